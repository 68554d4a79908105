"""Coefficients and logarithms of kernels that are sums of powers, one launch for all modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import Array, blocks, common, empty, namespace, real_type
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.kernel import COMPLEX, FIELDS, Kernel, instances, record
from refssm_gpu._parts.powers import later_sums, moment_sums, sums

HOLD, BILINEAR, SOFTMAX, RESOLVENT = range(4)  # as in modes.cuh
BLOCK = 128
_MODES = Kernel(
    "diagonal/modes.cuh",
    "diagonal_modes",
    (*instances(FIELDS, (HOLD, BILINEAR, SOFTMAX)), *instances(COMPLEX, (RESOLVENT,))),
    BLOCK,
    registers=96,
    double_inside=True,
    bound="launch",
)
_MODES_BACK = Kernel(
    "diagonal/modes.cuh",
    "diagonal_modes_back",
    instances(FIELDS, (HOLD, BILINEAR, SOFTMAX)),
    BLOCK,
    registers=128,
    double_inside=True,
    bound="launch",
)
_SIZES = record("count", "n", "inner", "l", mask=np.uint32)


@dataclass(frozen=True)
class Modes:
    """The modes of every row: arguments as the kernels take them, and what follows from them."""

    method: int
    kind: np.dtype  # of the arguments and the result
    rows: Batch  # of w, B, C and dt; B and dt may be absent
    size: Any  # modes_sizes in modes.cuh
    v: Array  # (…, n) in double precision
    x: Array
    flags: Array | None

    @property
    def grid(self) -> tuple[int]:
        """One thread a mode."""
        return (blocks(int(self.size["count"][0]), BLOCK),)

    def kernel(self, l: int) -> Array:
        """Σ_n v_n e^{x_n k}, k = 0 … l−1."""
        return self._summed(self.v, l, self.kind)

    def real_kernel(self, l: int) -> Array:
        """2 Re Σ_n v_n e^{x_n k}: sums no imaginary parts."""
        return self._summed(2 * self.v, l, real_type(self.kind))

    def _summed(self, v: Array, l: int, kind: Any) -> Array:
        role = "turned" if self.method == BILINEAR else "rising"
        return sums(v, self.x, l=l, kind=kind, **{role: self.flags})

    def gradients(self, dk: Array) -> tuple[Array, Array, Array, Array]:
        """dw, dB, dC and ddt over the whole batch, in double precision; dB is 0 without B."""
        if self.method == BILINEAR:
            found, start = later_sums(dk, self.x, self.flags)
        else:
            found, start = moment_sums(dk, self.x, rising=self.flags), None
        made = [empty(self.x.shape, found.dtype, dk) for _ in range(4)]
        dw, dB, dC, ddt = made
        instance = (self.kind.name, self.method)
        _MODES_BACK(instance, self.grid, *self.rows.arrays, found, start, *made, self.size)
        return dw, dB, dC, namespace(dk).sum(ddt, axis=-1)


def modes(method: int, w: Array, B: Array | None, C: Array, dt: Array | None, l: int = 0) -> Modes:
    """One launch; `l`, the length, matters to the softmax and to the resolvent."""
    kind = common(w, B, C, dt)
    rows = batch((w, B, C, dt), (1, 1, 1, 0), (kind, kind, kind, real_type(kind)))
    n = w.shape[-1]
    wide = np.result_type(kind, np.float64)
    v, x = (empty((*rows.shape, n), wide, w) for _ in range(2))
    flagged = method in (SOFTMAX, RESOLVENT) or (method == BILINEAR and kind.kind != "c")
    flags = empty(v.shape, np.uint8, w) if flagged else None
    size = np.array([(rows.rows * n, n, rows.inner, l, rows.mask)], _SIZES)
    made = Modes(method, kind, rows, size, v, x, flags)
    _MODES((kind.name, method), made.grid, *rows.arrays, v, x, flags, size)
    return made
