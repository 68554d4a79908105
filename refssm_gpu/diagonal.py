"""Mirrors of refssm.diagonal: modes first, then their sums of powers (refssm_gpu.vandermonde).

All that is of size n is in double precision, in one launch, and rounded once, in the tables. The
liquid and the shift kernel are array code.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refssm.diagonal import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_BILINEAR_REAL,
    DIAGONAL_KERNEL_ZOH,
    DIAGONAL_KERNEL_ZOH_REAL,
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    EMA_KERNEL,
    LIQUID_KERNEL,
    SHIFT_KERNEL,
)
from refssm_gpu._algebra.parts import at_places, conj, counting
from refssm_gpu._launching.arrays import (
    Array,
    blocks,
    common,
    empty,
    in_type_of,
    namespace,
    real_type,
    unbroadcast_and_round,
    unbroadcast_each,
    widened,
)
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.checked import mirror
from refssm_gpu._launching.kernel import COMPLEX, FIELDS, Kernel, instances, record
from refssm_gpu.vandermonde import later_sums, moment_sums, sums


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh(w, B, C, dt, *, l):
    return modes(HOLD, w, B, C, dt).kernel(l)


@mirror(DIAGONAL_KERNEL_ZOH)
def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    gradients = modes(HOLD, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).kernel(l)


@mirror(DIAGONAL_KERNEL_BILINEAR)
def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    gradients = modes(BILINEAR, w, B, C, dt).gradients(dk)
    return unbroadcast_and_round(gradients, (w, B, C, dt))


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    return modes(HOLD, w, B, C, dt).real_kernel(l)


@mirror(DIAGONAL_KERNEL_ZOH_REAL)
def diagonal_kernel_zoh_real_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    return _real_gradients(HOLD, dk, w, B, C, dt)


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """Powers of a small Ā also by its logarithm."""
    return modes(BILINEAR, w, B, C, dt).real_kernel(l)


@mirror(DIAGONAL_KERNEL_BILINEAR_REAL)
def diagonal_kernel_bilinear_real_vjp(dk, w, B, C, dt, *, l):
    del l  # dk has it
    return _real_gradients(BILINEAR, dk, w, B, C, dt)


def _real_gradients(method, dk, w, B, C, dt):
    """Those of the complex kernel for the cotangent 2 dk, in the type of the arguments."""
    twice = namespace(dk).astype(2 * dk, common(w, B, C, dt))
    return unbroadcast_and_round(modes(method, w, B, C, dt).gradients(twice), (w, B, C, dt))


# DSS: zero-order hold with B = 1, and the softmax over time


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel(w, C, dt, *, l):
    return modes(HOLD, w, None, C, dt).kernel(l)


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    del l  # dk has it
    dw, _, dC, ddt = modes(HOLD, w, None, C, dt).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel(w, C, dt, *, l):
    """Growing modes are summed backwards in time."""
    return modes(SOFTMAX, w, None, C, dt, l).kernel(l)


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    dw, _, dC, ddt = modes(SOFTMAX, w, None, C, dt, l).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))


# Coefficients and logarithms of all modes, in one launch


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
_MODES_BACK = replace(
    _MODES,
    name="diagonal_modes_back",
    instances=instances(FIELDS, (HOLD, BILINEAR, SOFTMAX)),
    registers=128,
)
_MODE_SIZES = record("count", "n", "inner", "l", mask=np.uint32)


@dataclass(frozen=True)
class ModeArguments:
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


def modes(
    method: int, w: Array, B: Array | None, C: Array, dt: Array | None, l: int = 0
) -> ModeArguments:
    """One launch; `l`, the length, matters to the softmax and to the resolvent."""
    kind = common(w, B, C, dt)
    rows = batch((w, B, C, dt), (1, 1, 1, 0), (kind, kind, kind, real_type(kind)))
    n = w.shape[-1]
    wide = np.result_type(kind, np.float64)
    v, x = (empty((*rows.shape, n), wide, w) for _ in range(2))
    flagged = method in (SOFTMAX, RESOLVENT) or (method == BILINEAR and kind.kind != "c")
    flags = empty(v.shape, np.uint8, w) if flagged else None
    size = np.array([(rows.rows * n, n, rows.inner, l, rows.mask)], _MODE_SIZES)
    made = ModeArguments(method, kind, rows, size, v, x, flags)
    _MODES((kind.name, method), made.grid, *rows.arrays, v, x, flags, size)
    return made


# Exponential moving averages: every power by its logarithm


_AVERAGES = Kernel(
    "diagonal/averages.cuh",
    "average_modes",
    instances(FIELDS),
    BLOCK,
    64,
    double_inside=True,
    bound="launch",
)
_AVERAGES_BACK = replace(_AVERAGES, name="average_modes_back")
_AVERAGE_SIZES = record("count", "n", "inner", mask=np.uint32)


def _averaged(delta, alpha, beta, gamma):
    """The arguments of all rows, their sizes, and coefficients and logarithms."""
    kind, n = common(delta, alpha, beta, gamma), beta.shape[-1]
    real = real_type(kind)
    rows = batch((delta, alpha, beta, gamma), (1, 1, 1, 1), (real, real, kind, kind))
    size = np.array([(rows.rows * n, n, rows.inner, rows.mask)], _AVERAGE_SIZES)
    v, x = (empty((*rows.shape, n), np.result_type(kind, float), beta) for _ in range(2))
    _AVERAGES((kind.name,), (blocks(v.size, BLOCK),), *rows.arrays, v, x, size)
    return rows.arrays, size, v, x


@mirror(EMA_KERNEL)
def ema_kernel(delta, alpha, beta, gamma, *, l):
    *_, v, x = _averaged(delta, alpha, beta, gamma)
    return sums(v, x, l=l, kind=common(delta, alpha, beta, gamma))


@mirror(EMA_KERNEL)
def ema_kernel_vjp(dk, delta, alpha, beta, gamma, *, l):
    del l  # dk has it
    primals = delta, alpha, beta, gamma
    given, size, _, x = _averaged(*primals)
    found, start = later_sums(dk, x)
    made = [empty(x.shape, found.dtype, dk) for _ in range(4)]
    grid = (blocks(x.size, BLOCK),)
    _AVERAGES_BACK((common(*primals).name,), grid, *given, found, start, *made, size)
    return unbroadcast_and_round(made, primals)


# Liquid kernels: powers by doubling, in double precision, rounded once


def _powers(a: Array, l: int) -> Array:
    """a_n^m, m = 0 … l−1."""
    xp = namespace(a)
    E, leap = xp.ones((*a.shape, 1), dtype=a.dtype)[..., :l], a[..., None]
    while E.shape[-1] < l:
        E = xp.concat([E, leap * E[..., : l - E.shape[-1]]], axis=-1)
        leap = leap * leap
    return E


def _product(B: Array, degree: int) -> Array:
    """B^d by products: the power of a complex number would go through its logarithm."""
    found = namespace(B).ones_like(B)
    for _ in range(degree):
        found = found * B
    return found


@mirror(LIQUID_KERNEL)
def liquid_kernel(a, B, C, *, l, degree=2):
    p, b, c = widened(a, B, C)
    terms = (c * _product(b, degree))[..., None] * _powers(p, l)
    return in_type_of(namespace(a).sum(terms, axis=-2), a, B, C)


@mirror(LIQUID_KERNEL)
def liquid_kernel_vjp(dk, a, B, C, *, l, degree=2):
    xp, (d, p, b, c) = namespace(dk), widened(dk, a, B, C)
    E, rest, later = conj(_powers(p, l)), _product(b, degree - 1), d[..., 1:]
    S = xp.sum(d[..., None, :] * E, axis=-1)
    moments = (1 + counting(later.shape[-1], later)) * later
    T = xp.sum(moments[..., None, :] * E[..., : later.shape[-1]], axis=-1)
    gradients = conj(c * rest * b) * T, degree * conj(c * rest) * S, conj(rest * b) * S
    return unbroadcast_and_round(gradients, (a, B, C))


# Shift kernels: a gather and a sum; entries from l = n on are zeros


@mirror(SHIFT_KERNEL)
def shift_kernel(B, C, *, l):
    xp, n = namespace(B, C), B.shape[-1]
    i, k = xp.arange(n), xp.arange(min(l, n))[:, None]
    products = B[..., None, :] * at_places(C, i + k)
    K = xp.sum(xp.where(i + k < n, products, 0.0), axis=-1)  # NaN in B stays where it is read
    return xp.concat([K, xp.zeros((*K.shape[:-1], l - K.shape[-1]), dtype=K.dtype)], axis=-1)


@mirror(SHIFT_KERNEL)
def shift_kernel_vjp(dk, B, C, *, l):
    xp, n = namespace(dk), B.shape[-1]
    i, k = xp.arange(n)[:, None], xp.arange(min(l, n))
    dk = dk[..., None, : k.shape[0]]
    later, earlier = at_places(C, i + k), at_places(B, xp.where(k <= i, i - k, n))
    dB = xp.sum(xp.where(i + k < n, dk * conj(later), 0.0), axis=-1)
    dC = xp.sum(xp.where(k <= i, dk * conj(earlier), 0.0), axis=-1)
    return unbroadcast_each((dB, dC), (B, C))
