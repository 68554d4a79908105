"""CuPy mirrors of refssm.linear_attention.delta_dplr; delta_dplr.cuh has the formulas.

Outputs take one launch. Gradients take, for pieces of √l steps from the last to the first, two
launches for the states before and the cotangents after all steps of a piece, and matrix products;
before that, one launch for each piece finds the state where it begins. By chunks they are the same
kernels: `chunk` changes nothing. For float16 and bfloat16
states inside are float32, rounded once at the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS
from refssm.scan.blocks import windows
from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    empty,
    in_type_of,
    namespace,
    transposed,
    unbroadcast_and_round,
)
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu._launching.kernel import REALS, Kernel, instances, record
from refssm_gpu.linear_attention.passes import COLUMNS, applied, cut, summed

NAMES = ("q", "k", "v", "log_g", "a", "b", "S0", "resets")  # the order of the arguments in the mask
CORES = (2, 2, 2, 2, 2, 2, 2, 1)
# low_rank_sizes in delta_dplr.cuh
SIZES = record("l", "n", "p", "inner", mask=np.uint32, at_rest=np.int32)
_STATES = Kernel(
    "linear_attention/delta_dplr.cuh",
    "low_rank_states",
    instances((*REALS, *HALVES)),
    32 * COLUMNS,
    registers=112,
    bound="latency",
)
_COTANGENTS = Kernel(
    "linear_attention/delta_dplr.cuh",
    "low_rank_cotangents",
    instances((*REALS, *HALVES)),
    32 * COLUMNS,
    registers=88,
    bound="latency",
)
Given = dict[str, Any]
HALVES_TOO = partial(mirror, types=WITH_HALVES)


class LowRankRows:
    """All arguments in one type and one batch; absent ones are None. States are (p, n) here."""

    def __init__(self, given: Given):
        arrays = [given[name] for name in NAMES]
        if given["S0"] is not None:
            arrays[6] = transposed(given["S0"])
        self.kind = common(*arrays[:7])
        types = (*[self.kind] * 6, accumulated(self.kind), np.uint8)
        self.rows: Batch = batch(arrays, CORES, types)
        q, v = given["q"], given["v"]
        self.core = q.shape[-2], q.shape[-1], v.shape[-1]
        self.inside = accumulated(self.kind)  # the type of states
        self.at_rest = given["S0"] is None

    def arguments(self, *names: str) -> list[Array | None]:
        """Some arguments, each in one piece of memory."""
        return [self.rows.arrays[NAMES.index(name)] for name in names]

    @property
    def grid(self) -> tuple[int]:
        """A block for each of some columns of each row."""
        return (self.rows.rows * blocks(self.core[2], COLUMNS),)

    @property
    def size(self) -> Any:
        """The sizes, as kernels take them."""
        fields = (*self.core, self.rows.inner, self.rows.mask, self.at_rest)
        return np.array([fields], SIZES)

    def new(self, *core: int, inside: bool = True) -> Array:
        """Memory for each row."""
        (q,) = self.arguments("q")
        return empty((self.rows.rows, *core), self.inside if inside else self.kind, q)


def scan(given: Given) -> tuple[Array, Array]:
    """All outputs, and the last states (n, p)."""
    r = LowRankRows(given)
    l, n, p = r.core
    y, now = r.new(l, p, inside=False), r.new(p, n)
    _STATES((r.kind.name,), r.grid, *r.arguments(*NAMES), y, now, None, None, r.size)
    return r.rows.unfolded(y, (l, p)), transposed(r.rows.unfolded(now, (p, n)))


def scan_back(dy: Array, dlast: Array | None, given: Given) -> Given:
    """Gradients by name, with all batch axes, in the type of states."""
    pieces, start = [], given["S0"]
    ranks: dict[str, int] = dict(zip(NAMES, CORES, strict=True))
    for w in windows(given["q"].shape[-2]):
        piece = {n: cut(x, w, ranks[n]) if n != "S0" else start for n, x in given.items()}
        pieces.append((w, piece))
        start = scan(piece)[1]
    found, dS = [], dlast
    for w, piece in reversed(pieces):
        gradients, dS = _piece_back(dy[..., w, :], dS, piece)
        found.append(gradients)
    xp = namespace(dy)
    joined = {name: xp.concat([g[name] for g in found[::-1]], axis=-2) for name in found[0]}
    return joined | {"S0": dS}


def _piece_back(dy: Array, dS: Array | None, given: Given):
    """The gradients of a piece by name, and the cotangent of the state before it."""
    r = LowRankRows(given)
    l, n, p = r.core
    xp, before, z, now = namespace(dy), r.new(l, p, n), r.new(l, p), r.new(p, n)
    _STATES((r.kind.name,), r.grid, *r.arguments(*NAMES), None, now, before, z, r.size)
    H, dstart = r.new(l, p, n), r.new(p, n)
    dlast = None if dS is None else r.rows.every_row(transposed(dS), 2, r.inside)
    dy = r.rows.every_row(dy, 2, r.kind)
    arguments = r.arguments("q", "log_g", "a", "b", "resets")
    _COTANGENTS((r.kind.name,), r.grid, dy, dlast, *arguments, dstart, H, r.size)
    before, H = (r.rows.unfolded(x, (l, p, n)) for x in (before, H))
    z, dy = (xp.astype(r.rows.unfolded(x, (l, p)), r.inside, copy=False) for x in (z, dy))
    k, v, log_g, b = (xp.astype(given[x], r.inside, copy=False) for x in ("k", "v", "log_g", "b"))
    decayed, w = xp.exp(log_g)[..., None, :] * before, applied(H, b)
    if given["resets"] is not None:
        # selected: a gate that is NaN has no effect where a sequence begins
        decayed = xp.where(given["resets"][..., None, None] != 0, 0, decayed)
    S = decayed + z[..., None] * b[..., None, :] + v[..., None] * k[..., None, :]
    gradients = {
        "q": summed(dy, S),
        "k": summed(v, H),
        "v": applied(H, k),
        "log_g": xp.sum(decayed * H, axis=-2),
        "a": summed(w, before),
        "b": summed(z, H),
    }
    return gradients, transposed(r.rows.unfolded(dstart, (p, n)))


def run(arguments, S0, resets, *, chunk=0):
    """The outputs, and the last state if there is a first one."""
    del chunk
    y, S = scan(_given(arguments, S0, resets))
    return (y,) if S0 is None else (y, in_type_of(S, *arguments[1:], S0))


def back(cotangents, arguments, S0, resets, *, chunk=0):
    """Gradients for the arguments, and for S0 if there is one."""
    del chunk
    dy, *last = cotangents
    dS = last[0] if last else None
    primals = dict(zip(NAMES, arguments, strict=False)) | ({} if S0 is None else {"S0": S0})
    if not dy.shape[-2]:
        xp = namespace(*arguments)
        zeros = [xp.zeros(x.shape, dtype=x.dtype) for x in arguments]
        return (*zeros, *(() if S0 is None else unbroadcast_and_round((dS,), (S0,))))
    found = scan_back(dy, dS, _given(arguments, S0, resets))
    return unbroadcast_and_round([found[name] for name in primals], [*primals.values()])


def _given(arguments, S0, resets) -> Given:
    """All arguments by name; absent ones are None."""
    return dict(zip(NAMES, (*arguments, S0, resets), strict=True))


(
    (delta_dplr, delta_dplr_vjp),
    (delta_dplr_stateful, delta_dplr_stateful_vjp),
    (delta_dplr_packed, delta_dplr_packed_vjp),
    (delta_dplr_packed_stateful, delta_dplr_packed_stateful_vjp),
    (delta_dplr_states, delta_dplr_states_vjp),
    (delta_dplr_step, delta_dplr_step_vjp),
) = DELTA_DPLR_RULE.mirrors(run, back, HALVES_TOO)
(
    (delta_dplr_chunked, delta_dplr_chunked_vjp),
    (delta_dplr_chunked_stateful, delta_dplr_chunked_stateful_vjp),
    (delta_dplr_chunked_packed, delta_dplr_chunked_packed_vjp),
    (delta_dplr_chunked_packed_stateful, delta_dplr_chunked_packed_stateful_vjp),
) = DELTA_DPLR_BY_CHUNKS.mirrors(run, back, HALVES_TOO)
