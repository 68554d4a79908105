"""Numba mirrors of refssm.linear_attention.chunked: one kernel for each direction.

The kernels choose how many steps they take at once, so `chunk` changes nothing. Where a result is
not finite, and for few steps, the kernels of the recurrence take one step after the other.
"""

from math import prod

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import joined
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.threads import each_on_one_core
from refssm.jit.linear_attention.backward import pieces_back
from refssm.jit.linear_attention.forward import scan_pieces
from refssm.jit.linear_attention.mirrors import kernels_of
from refssm.jit.linear_attention.weights import CHUNK
from refssm.jit.ssd.forward import products
from refssm.linear_attention.chunked import (
    DELTA_CHUNKED,
    GATED_DELTA_CHUNKED,
    GATED_LINEAR_CHUNKED,
    KIMI_CHUNKED,
)
from refssm.linear_attention.reads_first import ReadsFirst
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS
from refssm.scan.blocks import no_resets

MANY = 16  # steps for which matrix products are faster than single steps
SPAN = 8192  # steps of which the states between pieces are in memory at once


class _Pieces:
    """`run` and `back` of one recurrence, and the same step by step."""

    def __init__(self, recurrence):
        self.steps = kernels_of(recurrence.same_as)
        self.names, self.keyed = tuple(recurrence.inputs), self.steps.keyed

    def run(self, arguments, S0, resets, *, chunk=0):
        """All outputs, and the last state."""
        del chunk
        given, start, begun = self._completed(arguments, S0, resets)
        if _long(given):
            y, S, finite = scan_pieces(*given, *self._products(given), start, begun)
            if finite.all():
                return y, S
        return self.steps.run(arguments, S0, resets)

    def back(self, cotangents, arguments, S0, resets, *, chunk=0):
        """Gradients for the arguments and S0."""
        del chunk
        given, start, begun = self._completed(arguments, S0, resets)
        if _long(given):
            dy, dS = (*cotangents, np.zeros_like(start))[:2]
            gradients, finite = self._in_spans(dy, dS, given, start, begun)
            if finite:
                return unbroadcast_each(gradients, (*arguments, start if S0 is None else S0))
        return self.steps.back(cotangents, arguments, S0, resets)

    def _in_spans(self, dy, dS, given, S, resets):
        """Gradients SPAN steps at a time, and whether all are finite."""
        l, states, found = dy.shape[-2], [S], []
        windows = [slice(first, first + SPAN) for first in range(0, l, SPAN)]
        for w in windows[:-1]:
            part = _cut(given, w)
            scored = self._products(part)
            states.append(scan_pieces(*part, *scored, states[-1], resets[..., w])[1])
        every = True
        for w, S in zip(windows[::-1], states[::-1], strict=True):
            part = _cut(given, w)
            scored = self._products(part)
            results = pieces_back(dy[..., w, :], dS, *part, *scored, S, resets[..., w])
            *parts, dS, finite = results
            found.append(parts)
            every = every and finite.all()
        found = self._in_rows(found)
        parts = found[0] if len(found) == 1 else joined(found, -2)
        told = dict(zip(("q", "k", "v", "log_g", "beta"), parts, strict=True))
        told = {name: told[name] for name in self.names}
        for name in ("beta",) if self.keyed else ("log_g", "beta"):
            if name in told:
                told[name] = told[name][..., 0]
        return (*told.values(), dS), every

    def _in_rows(self, found):
        """The gradients of β as columns."""
        return [(*parts[:-1], np.swapaxes(parts[-1], -1, -2)) for parts in found]

    def _products(self, given):
        """K Kᵀ and Q Kᵀ of each chunk, once for all heads that share keys and queries.

        Nothing where no heads do, for the kernels are faster then, nor where each key has its gate,
        for that enters the sums."""
        q, k, *others = given
        batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
        every = np.broadcast_shapes(batch, *(x.shape[:-2] for x in others))
        if self.keyed or prod(batch) == prod(every):
            nothing = np.zeros_like(k, shape=(k.shape[-2], 0))
            return nothing, nothing
        # BLAS with several threads waits for them at each chunk, far longer than it computes
        return tuple(each_on_one_core(lambda x: products(k, x, CHUNK), (k, q)))

    def _completed(self, arguments, S0, resets):
        """The kernels' arguments, the first state and the resets."""
        told = dict(zip(self.names, arguments, strict=True))
        q, k, v, beta = told["q"], told["k"], told["v"], told.get("beta")
        beta = np.zeros_like(k, shape=0) if beta is None else beta
        log_g = told.get("log_g", np.zeros_like(k, shape=k.shape[-2:-1]))
        log_g = log_g if self.keyed else log_g[..., None]
        rest = np.zeros_like(k, shape=(k.shape[-1], v.shape[-1]))
        resets = no_resets(k.shape[-2]) if resets is None else resets
        given = q, k, v, log_g, beta[..., None, :]
        return given, rest if S0 is None else S0, resets


class _PiecesReadingFirst(_Pieces):
    """The same for a recurrence that reads before it writes."""

    def run(self, arguments, S0, resets, *, chunk=0):
        """All outputs, and the last state."""
        return ReadsFirst(super().run, super().back).run(arguments, S0, resets, chunk=chunk)

    def back(self, cotangents, arguments, S0, resets, *, chunk=0):
        """Gradients for the arguments and S0."""
        first = ReadsFirst(super().run, super().back)
        return first.back(cotangents, arguments, S0, resets, chunk=chunk)


def _long(given) -> bool:
    """True where matrix products are faster than single steps."""
    q, _, v, *_ = given
    return v.shape[-2] >= MANY and v.shape[-1] > 0 and q.shape[-1] > 0


def _cut(given, w):
    """The kernels' arguments in a window of time; β is a row."""
    *others, beta = given
    return *(x[..., w, :] for x in others), beta[..., w]


def _mirrors(recurrence):
    made = _Pieces(recurrence)
    return recurrence.mirrors(made.run, made.back, mirror)


(
    (gated_linear_recurrence_chunked, gated_linear_recurrence_chunked_vjp),
    (gated_linear_recurrence_chunked_stateful, gated_linear_recurrence_chunked_stateful_vjp),
    (gated_linear_recurrence_chunked_packed, gated_linear_recurrence_chunked_packed_vjp),
    (
        gated_linear_recurrence_chunked_packed_stateful,
        gated_linear_recurrence_chunked_packed_stateful_vjp,
    ),
) = _mirrors(GATED_LINEAR_CHUNKED)
_FIRST = _PiecesReadingFirst(GATED_LINEAR_CHUNKED)
(
    (rwkv6_chunked, rwkv6_chunked_vjp),
    (rwkv6_chunked_stateful, rwkv6_chunked_stateful_vjp),
    (rwkv6_chunked_packed, rwkv6_chunked_packed_vjp),
    (rwkv6_chunked_packed_stateful, rwkv6_chunked_packed_stateful_vjp),
) = RWKV6_BY_CHUNKS.mirrors(_FIRST.run, _FIRST.back, mirror)
(
    (delta_rule_chunked, delta_rule_chunked_vjp),
    (delta_rule_chunked_stateful, delta_rule_chunked_stateful_vjp),
    (delta_rule_chunked_packed, delta_rule_chunked_packed_vjp),
    (delta_rule_chunked_packed_stateful, delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(DELTA_CHUNKED)
(
    (gated_delta_rule_chunked, gated_delta_rule_chunked_vjp),
    (gated_delta_rule_chunked_stateful, gated_delta_rule_chunked_stateful_vjp),
    (gated_delta_rule_chunked_packed, gated_delta_rule_chunked_packed_vjp),
    (gated_delta_rule_chunked_packed_stateful, gated_delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(GATED_DELTA_CHUNKED)
(
    (kimi_delta_rule_chunked, kimi_delta_rule_chunked_vjp),
    (kimi_delta_rule_chunked_stateful, kimi_delta_rule_chunked_stateful_vjp),
    (kimi_delta_rule_chunked_packed, kimi_delta_rule_chunked_packed_vjp),
    (kimi_delta_rule_chunked_packed_stateful, kimi_delta_rule_chunked_packed_stateful_vjp),
) = _mirrors(KIMI_CHUNKED)
