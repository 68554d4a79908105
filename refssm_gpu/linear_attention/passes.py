"""Linear attention on the card; linear_attention.cuh has the formulas.

Outputs take one launch. Gradients take, for pieces of √l steps from the last to the first, two
launches for the states before and the cotangents after all steps of a piece, and matrix products;
before that, one launch for each piece finds the state where it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm.scan.blocks import windows
from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    empty,
    namespace,
    transposed,
)
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.kernel import REALS, Kernel, instances, record

COLUMNS = 4  # of a block, a warp for each: COLUMNS in linear_attention.cuh
NAMES = ("q", "k", "v", "log_g", "beta", "S0", "resets")  # the order of the arguments in the mask
CORES = (2, 2, 2, 2, 1, 2, 1)
# attention_sizes in linear_attention.cuh
SIZES = record("l", "n", "p", "gates", "inner", mask=np.uint32, at_rest=np.int32)
_STATES = Kernel(
    "linear_attention/linear_attention.cuh",
    "attention_states",
    instances((*REALS, *HALVES), (0, 1)),
    32 * COLUMNS,
    registers=96,
    bound="latency",
)
_COTANGENTS = Kernel(
    "linear_attention/linear_attention.cuh",
    "attention_cotangents",
    instances((*REALS, *HALVES), (0, 1)),
    32 * COLUMNS,
    registers=88,
    bound="latency",
)


@dataclass(frozen=True)
class Rows:
    """All arguments in one type and one batch; absent ones are None. States are (p, n) here."""

    rows: Batch
    kind: np.dtype
    core: tuple[int, int, int]  # l, n, p
    gates: int

    def argument(self, name: str) -> Array | None:
        """An argument in one piece of memory."""
        return self.rows.arrays[NAMES.index(name)]

    @property
    def inside(self) -> np.dtype:
        """The type of states: halves are computed in single precision."""
        return accumulated(self.kind)

    @property
    def rule(self) -> int:
        """1 with a delta rule."""
        return int(self.argument("beta") is not None)

    @property
    def grid(self) -> tuple[int]:
        """A block for each of some columns of each row."""
        return (self.rows.rows * blocks(self.core[2], COLUMNS),)

    def size(self, at_rest: bool) -> Any:
        """The sizes, as kernels take them."""
        l, n, p = self.core
        fields = (l, n, p, self.gates, self.rows.inner, self.rows.mask, at_rest)
        return np.array([fields], SIZES)

    def new(self, *core: int, inside: bool = True) -> Array:
        """Memory for each row."""
        q = self.argument("q")
        return empty((self.rows.rows, *core), self.inside if inside else self.kind, q)


def rows_of(given: Mapping[str, Any]) -> Rows:
    """Bring the arguments to one type and one batch; `log_g` has an axis of gates."""
    arrays = [given.get(name) for name in NAMES]
    if given["S0"] is not None:
        arrays[NAMES.index("S0")] = transposed(given["S0"])
    kind = common(*arrays[:6])
    types = (*[kind] * 5, accumulated(kind), np.uint8)
    q, v, log_g = given["q"], given["v"], given.get("log_g")
    core = q.shape[-2], q.shape[-1], v.shape[-1]
    gates = 1 if log_g is None else log_g.shape[-1]
    return Rows(batch(arrays, CORES, types), kind, core, gates)


def scan(given: Mapping[str, Any]) -> tuple[Array, Array]:
    """All outputs, and the last states (n, p)."""
    r = rows_of(given)
    l, n, p = r.core
    y, now = r.new(l, p, inside=False), r.new(p, n)
    _launch_states(r, y, now, None, None, at_rest=given["S0"] is None)
    return r.rows.unfolded(y, (l, p)), transposed(r.rows.unfolded(now, (p, n)))


def _launch_states(r: Rows, y, now, before, missing, *, at_rest: bool) -> None:
    arguments = (r.argument(name) for name in NAMES)
    _STATES((r.kind.name, r.rule), r.grid, *arguments, y, now, before, missing, r.size(at_rest))


def scan_back(dy: Array, dlast: Array | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Gradients by name, with all batch axes; those of q, k, v and gates in the type of states."""
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
    if not found:
        return {"S0": dlast}
    xp = namespace(dy)
    joined = {
        name: xp.concat([g[name] for g in found[::-1]], axis=-ranks[name]) for name in found[0]
    }
    return joined | {"S0": dS}


def cut(x, w: slice, rank: int):
    """Some steps of an argument, which may be absent."""
    return x if x is None else x[..., w, :] if rank == 2 else x[..., w]


def _piece_back(dy: Array, dS: Array | None, given: Mapping[str, Any]):
    """The gradients of a piece by name, and the cotangent of the state before it."""
    r = rows_of(given)
    l, n, p = r.core
    at_rest, xp = given["S0"] is None, namespace(dy)
    Z, missing, now = r.new(l, p, n), r.new(l, p), r.new(p, n)
    _launch_states(r, None, now, Z, missing, at_rest=at_rest)
    H, dstart = r.new(l, p, n), r.new(p, n)
    dlast = None if dS is None else r.rows.every_row(transposed(dS), 2, r.inside)
    dy = r.rows.every_row(dy, 2, r.kind)
    arguments = (r.argument(name) for name in ("q", "k", "log_g", "beta", "resets"))
    _COTANGENTS(
        (r.kind.name, r.rule), r.grid, dy, dlast, *arguments, dstart, H, r.size(at_rest)
    )  # fmt: skip
    Z, H = (r.rows.unfolded(x, (l, p, n)) for x in (Z, H))
    r_t, dy = (r.rows.unfolded(x, (l, p)) for x in (missing, dy))
    k, dy = (xp.astype(x, r.inside, copy=False) for x in (given["k"], dy))
    w = applied(H, k)
    beta = None if given["beta"] is None else xp.astype(given["beta"], r.inside)[..., None]
    u, dv, D = r_t, w, H
    if beta is not None:
        u, dv = beta * r_t, beta * w
        D = H - dv[..., :, None] * k[..., None, :]
    S = Z + u[..., :, None] * k[..., None, :]
    dk = summed(r_t, H) if beta is None else beta * (summed(r_t, H) - summed(w, Z))
    dlog_g = xp.sum(Z * D, axis=-2)
    if r.gates < n:
        dlog_g = xp.sum(dlog_g, axis=-1, keepdims=True)
    if given["resets"] is not None:
        dlog_g = xp.where(given["resets"][..., None] != 0, 0, dlog_g)
    gradients = {"q": summed(dy, S), "k": dk, "v": dv, "log_g": dlog_g}
    if beta is not None:
        gradients["beta"] = xp.sum(r_t * w, axis=-1)
    return gradients, transposed(r.rows.unfolded(dstart, (p, n)))


def applied(H: Array, k: Array) -> Array:
    """H k for matrices (p, n)."""
    return (H @ k[..., None])[..., 0]


def summed(x: Array, H: Array) -> Array:
    """Hᵀ x for matrices (p, n)."""
    return (x[..., None, :] @ H)[..., 0, :]
