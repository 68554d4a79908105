"""Programs of delta rules: by steps, in chunks by a triangular system, in blocks, doubled, apart.

States and their cotangents are runs of one kind, X_t = (I − β_t k_t k_tᵀ) diag(e^{g_t}) X_{t−1} +
b_t c_tᵀ: a way to compute all of them is a program of each form, forward and back. A reset is a
gate of −∞. Cotangents H_t of the states, with what comes from outputs, run in reverse time: with
D_t = (I − β_t k_t k_tᵀ) H_t, H_{t−1} = diag(e^{g_t}) D_t + q_{t−1} dy_{t−1}ᵀ.
"""

from collections.abc import Callable
from math import ceil, log2, prod

import numpy as np

from refssm._declaration.recurrence import Recurrence
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.gauges.columns.steps import RECURRENCES
from refssm.conformance.gauges.programs.linear_attention.states import (
    CHUNK,
    StateRun,
    apart,
    by_steps,
    cotangents_apart,
    doubled,
    farther,
    in_blocks,
    in_chunks,
    outer,
    recalled,
)
from refssm.linear_attention.chunked import GATED_LINEAR_CHUNKED
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS
from refssm.linear_attention.sweep import gates_keys

DENSE = 2**27  # multiplications of whole matrices that a case may take
MOST = 2**24  # states at all times, on all copies


class ByAllStates:
    """`run` and `back` of a recurrence in one way of computing all states."""

    def __init__(self, scan: Callable, recurrence: Recurrence):
        self.scan, self.names = scan, [*recurrence.inputs]
        self.keyed = gates_keys(recurrence.operators[0])

    def run(self, arguments, S0, resets, **statics):
        """The outputs and the last state."""
        q, _, v, *_ = self._given(arguments)
        states, start = self._states(arguments, S0, resets, statics)
        if not v.shape[-2]:
            return np.zeros((*start.shape[:-2], 0, v.shape[-1]), v.dtype), start
        return _difference([recalled(S, q) for S in states]), _difference(states)[..., -1, :, :]

    def back(self, cotangents, arguments, S0, resets, **statics):
        """The gradients, from all states and all their cotangents.

        Products of a state and a cotangent are made of their parts, and then added: a sum over
        pairs of steps multiplies before anything cancels.
        """
        q, k, v, g, beta = self._given(arguments)
        states, start = self._states(arguments, S0, resets, statics)
        dy, dS = (*cotangents, np.zeros_like(start))[:2]
        if not v.shape[-2]:
            return *(np.zeros_like(x) for x in arguments), dS
        none = _cleared(resets, g)
        decay = np.exp(none)[..., None]
        Z = [decay * x for x in _moved(states, start, later=False)]
        H = self._cotangents(q, k, none, beta, dy, dS, statics)
        r, w = (_difference([recalled(x, k) for x in parts]) for parts in (Z, H))
        r = v - r
        dv = beta * w
        taken = outer(k, dv)
        dZ = [H[0], H[1] + taken] if H[1:] else [H[0] - taken]
        dq = _difference([(S * dy[..., None, :]).sum(-1) for S in states])
        whole_Z, whole_H = _difference(Z), _difference(H)
        dk = beta * ((whole_H * r[..., None, :]).sum(-1) - (whole_Z * w[..., None, :]).sum(-1))
        axes = -1 if self.keyed else (-1, -2)
        of_parts = [_difference([(x * d).sum(axes) for x in Z]) for d in dZ]
        found = {"q": dq, "k": dk, "v": dv, "log_g": _difference(of_parts), "beta": (r * w).sum(-1)}
        dS0 = decay[..., 0, :, :] * _apart_to_the_start([x[..., 0, :, :] for x in dZ])
        gradients = (*(found[name] for name in self.names), dS0)
        return unbroadcast_each(gradients, (*arguments, start if S0 is None else S0))

    def _cotangents(self, q, k, g, beta, dy, dS, statics):
        """H_t = diag(e^{g_{t+1}}) D_{t+1} + q_t dy_tᵀ, from the scan of D in reverse time."""
        if self.scan is apart:
            return cotangents_apart(StateRun(k, beta, g, q, dy), dS, **statics)
        later = np.concatenate([g[..., 1:, :], np.zeros_like(g[..., :1, :])], axis=-2)
        b = q - beta * k * (k * q).sum(-1, keepdims=True)
        turned = (np.flip(x, axis=-2) for x in (k, beta, later, b, dy))
        D = [np.flip(x, axis=-3) for x in _parts(self.scan(StateRun(*turned), dS, **statics))]
        first, *others = (np.exp(later)[..., None] * x for x in _moved(D, dS, later=True))
        return [first + outer(q, dy), *others]

    def _given(self, arguments):
        """q, k, v, g and beta, the last two with an axis of keys."""
        given = dict(zip(self.names, arguments, strict=True))
        k, beta = given["k"], given["beta"][..., None]
        g = given.get("log_g", np.zeros_like(k, shape=k.shape[:-1]))
        return given["q"], k, given["v"], g if self.keyed else g[..., None], beta

    def _states(self, arguments, S0, resets, statics):
        """All states and the one before them, with all leading axes."""
        q, k, v, g, beta = self._given(arguments)
        shapes = [x.shape[:-2] for x in (q, k, v, g, beta)]
        shapes += [] if resets is None else [resets.shape[:-1]]
        shapes += [] if S0 is None else [S0.shape[:-2]]
        shape = (*np.broadcast_shapes(*shapes), k.shape[-1], v.shape[-1])
        start = np.zeros_like(k, shape=shape) if S0 is None else np.broadcast_to(S0, shape)
        if not v.shape[-2]:
            return [start[..., None, :, :]], start
        run = StateRun(k, beta, _cleared(resets, g), beta * k, v)
        return _parts(self.scan(run, start, **statics)), start


def _parts(found):
    """The states as a list of one array, or of two whose difference they are."""
    return [*found] if isinstance(found, tuple) else [found]


def _difference(parts):
    """What was written less what was taken away, or the one part there is."""
    return parts[0] - parts[1] if parts[1:] else parts[0]


def _apart_to_the_start(parts):
    """The cotangent before the first step. Two sums are subtracted after it, as by a chunk: where
    the first step takes away all of the state, what is left is their roundings."""
    return parts[0] - farther(*parts) if parts[1:] else parts[0]


def _moved(parts, end, *, later):
    """The parts one step later or earlier; `end` comes in at the end, of which nothing is taken."""
    found = []
    for x, edge in zip(parts, (end, np.zeros_like(end)), strict=False):
        edge = edge[..., None, :, :]
        both = [x[..., 1:, :, :], edge] if later else [edge, x[..., :-1, :, :]]
        found.append(np.concatenate(both, axis=-3))
    return found


def _cleared(resets, g):
    """The gates, −∞ where a sequence begins."""
    return g if resets is None else np.where((resets != 0)[..., None], -np.inf, g).astype(g.dtype)


def fitting(op, program: Callable, cotangents: int, *, matrices: bool) -> Callable:
    """The program, which declines cases that would take much memory or time."""

    def taken(*arrays, **statics):
        sizes = op.sizes(*arrays[cotangents:], **statics)
        l, n, p = sizes.get("l", 1), sizes["n"], sizes["p"]
        batch = prod(arrays[cotangents].shape[: arrays[cotangents].ndim - len(op.input_dims[0])])
        work = batch * l * n * n * (n + p) * ceil(log2(2 * l))
        if batch * l * n * p > MOST or (matrices and work > DENSE):
            return None
        return program(*arrays, **statics)

    return taken


WAYS = {"by_steps": by_steps, "in_chunks": in_chunks, "in_blocks": in_blocks, "doubled": doubled}
# in place of blocks from rest: they err less than two sums that a chunk's end subtracts
BY_CHUNKS = {"by_steps": by_steps, "in_chunks": in_chunks, "doubled": doubled, "apart": apart}


def _programs(gradient: bool) -> dict[str, dict[str, Callable]]:
    """By operator and way, its programs or those of its VJP."""
    found: dict[str, dict[str, Callable]] = {}
    for recurrence in RECURRENCES:
        ways = BY_CHUNKS if recurrence.same_as else WAYS
        for name, scan in ways.items():
            way = ByAllStates(scan, recurrence)
            pairs = recurrence.mirrors(way.run, way.back, lambda op: lambda f: f)
            for op, pair in zip(recurrence.operators, pairs, strict=True):
                program, given = (pair.vjp, len(op.outputs)) if gradient else (pair.forward, 0)
                found.setdefault(op.name, {})[name] = fitting(
                    op, program, given, matrices=scan is doubled
                )
    return found


def _defined(op) -> dict[str, Callable]:
    """The form by steps, and those by chunks: one exponential for a step, and one for a pair.

    The rounding of one decay, the same in all steps, is that of the state so many times over.
    """
    return {
        "by_steps": lambda *arrays, chunk: op.definition(*arrays),
        "in_chunks": lambda *arrays, chunk: op.reference(*arrays, chunk=CHUNK),
        "in_its_chunks": op.reference,
    }


OUTPUTS, GRADIENTS = _programs(gradient=False), _programs(gradient=True)
for _recurrence in (GATED_LINEAR_CHUNKED, RWKV6_BY_CHUNKS):
    OUTPUTS |= {op.name: _defined(op) for op in _recurrence.operators}
