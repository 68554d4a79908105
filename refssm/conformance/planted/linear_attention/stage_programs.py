"""The stages of a chunk by parts, of which planted bugs change one; G has an axis of keys.

`but_for(part=…)` is a program of a stage with another part. A program for G with an axis of keys is
one of the operator with one gate a head by `of_heads`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from refssm._declaration.operator import Operator
from refssm.linear_attention import (
    CHUNK_GATES,
    CHUNK_INVERSE,
    CHUNK_OUTPUTS,
    CHUNK_OUTPUTS_KEYED,
    CHUNK_PRODUCTS,
    CHUNK_PRODUCTS_KEYED,
    CHUNK_STATES,
    CHUNK_STATES_KEYED,
    CHUNK_WRITES,
    CHUNK_WRITES_KEYED,
)

KEYED = CHUNK_PRODUCTS_KEYED, CHUNK_WRITES_KEYED, CHUNK_STATES_KEYED, CHUNK_OUTPUTS_KEYED
STAGES = (
    CHUNK_GATES,
    CHUNK_PRODUCTS,
    CHUNK_INVERSE,
    CHUNK_WRITES,
    CHUNK_STATES,
    CHUNK_OUTPUTS,
)


def of_heads(op: Operator, program: Callable) -> Callable:
    """A program for G with an axis of keys as one of `op`, which may have one gate a head."""
    if op in KEYED:
        return program
    place = [*op.inputs].index("g")

    def adapted(*arrays):
        given = [x[..., None] if i == place else x for i, x in enumerate(arrays)]
        return program(*given)

    return adapted


def decays(g):
    """e^{G_i − G_j} as (…, l, l, n), 0 for i < j."""
    seen = np.tri(g.shape[-2], dtype=bool)[..., None]
    spans = g[..., :, None, :] - g[..., None, :, :]
    return np.where(seen, np.exp(np.where(seen, spans, 0)), 0).astype(g.dtype)


def pairs(q, k, E):
    """Σ_n q_in k_jn E_ijn."""
    return (q[..., :, None, :] * (E * k[..., None, :, :])).sum(-1)


def lower(P):
    """The part below the diagonal."""
    return np.tril(P, -1)


def of_products(k, g, beta, *, of_pairs=decays, mask=lower, rate=lambda b: b[..., :, None]):
    """L by parts."""
    return mask(rate(beta) * pairs(k, k, of_pairs(g))).astype(k.dtype)


def of_writes(
    k,
    v,
    g,
    beta,
    X,
    *,
    rate_of_W=lambda b: b,
    rate_of_U=lambda b: b,
    of_X=np.tril,
    keys=lambda k, g: np.exp(g) * k,
    values=lambda v, g: v,
    W_after=lambda W, g: W,
):
    """W and U by parts."""
    W = W_after(of_X(X) @ (rate_of_W(beta)[..., None] * keys(k, g)), g)
    U = of_X(X) @ (rate_of_U(beta)[..., None] * values(v, g))
    return every(W.astype(k.dtype), U.astype(k.dtype))


def every(*arrays):
    """Both outputs with all leading axes."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    return tuple(np.broadcast_to(x, (*batch, *x.shape[-2:])).copy() for x in arrays)


def end_of(g, c):
    """G at the end of chunk c."""
    return g[..., c, -1:, :]


def of_states(k, w, u, g, S, *, new=lambda u, w, S: u - w @ S, end=end_of,
              keys=lambda k, g, end: np.exp(end - g) * k, carry=lambda S, end: np.exp(end).mT * S,
              keep=lambda S: S, kept=lambda before, S: before, start=lambda S, S0, c: S,
              shown=lambda v, u: v):  # fmt: skip
    """The states by parts."""
    batch = np.broadcast_shapes(*(x.shape[:-3] for x in (k, w, u, g)), S.shape[:-2])
    S = S0 = np.broadcast_to(S, (*batch, *S.shape[-2:])).copy()
    states, values = [], []
    for c in range(k.shape[-3]):
        before = S = start(S, S0, c)
        written = new(u[..., c, :, :], w[..., c, :, :], S)
        final = end(g, c)
        moved = keys(k[..., c, :, :], g[..., c, :, :], final)
        S = keep(carry(S, final) + np.swapaxes(moved, -1, -2) @ written).astype(S0.dtype)
        states.append(kept(before, S))
        values.append(np.broadcast_to(shown(written, u[..., c, :, :]), (*batch, *u.shape[-2:])))
    return np.stack(states, -3), np.stack(values, -3).astype(S0.dtype), S


def of_outputs(q, k, v, g, S, *, of_pairs=decays, mask=np.tril, queries=lambda q, g: np.exp(g) * q,
               state=lambda S: S):  # fmt: skip
    """Y by parts."""
    P = mask(pairs(q, k, of_pairs(g)))
    return (queries(q, g) @ state(S) + P @ v).astype(q.dtype)


def but_for(op: Operator, program: Callable, **parts) -> Callable:
    """The program of a stage with other parts, in place of the right one."""
    changed = of_heads(op, partial(program, **parts))
    return lambda right, *arrays: changed(*arrays)
