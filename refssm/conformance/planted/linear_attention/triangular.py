"""Linear attention by chunks as kernels compute it, with replaceable parts.

    T = (I + L)⁻¹,  U = T β V,  W = T β (E∘K),  new = U − W S,
    y = (E∘Q) S + P new,  S ← E_end S + (F∘K)ᵀ new

with L_ij = β_i Σ_n k_in k_jn D_ijn below the diagonal, P_ij = Σ_n q_in k_jn D_ijn up to it, and the
decays D from j to i, E from the start of the chunk, F to its end; without β, new = V.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.linear_attention.forms import Given, form
from refssm.conformance.planted.planting import InEach
from refssm.conformance.planted.scan.pieces import in_any_form

LONGEST = 64  # all weights of a chunk are in memory at once


def inverse(L):
    """(I + L)⁻¹ by forward substitution."""
    l, rows = L.shape[-1], []
    for i in range(l):
        row = np.broadcast_to((np.arange(l) == i).astype(L.dtype), L.shape[:-1])
        if rows:
            row = row - (L[..., i, None, :i] @ np.stack(rows, axis=-2))[..., 0, :]
        rows.append(row / (1 + L[..., i, i, None]))
    return np.stack(rows, axis=-2)


def scored(x, k, D):
    """Σ_n x_in k_jn D_ijn."""
    return np.einsum("...in,...jn,...ijn->...ij", x, k, np.broadcast_to(D, np.broadcast_shapes(
        D.shape, (1, 1, x.shape[-1]))))  # fmt: skip


def _below(A):
    return np.tril(A, -1)


RIGHT = SimpleNamespace(
    of_L=lambda c: c.D,  # the decays in L
    of_P=lambda c: c.D,  # and in P
    strict=_below,
    up_to=np.tril,
    inverse=inverse,
    sums=lambda c: c.G,  # from the start of the chunk
    beta_of_U=lambda beta: beta,
    beta_of_W=lambda beta: beta,
    keys_of_W=lambda c: c.E * c.k,
    W=lambda W, c: W,
    new=lambda U, W, S: U - W @ S,
    queries=lambda c: c.E * c.q,
    keys_to_end=lambda c: c.D[..., -1, :, :] * c.k,
    carried=lambda S, c: c.E[..., -1, :, None] * S,
    keep=lambda S: S,
    start=lambda S, first, g, size: S,
    seen=lambda resets: resets,
)


def _decays(part: Given, before, given):
    """The chunk's decays; `before` is the sum of log_g before it."""
    l = part.q.shape[-2]
    number = np.cumsum(part.resets, axis=-1)
    i = np.arange(l)
    same = (number[..., :, None] == number[..., None, :]) & (i[:, None] >= i)
    later = (i[:, None] > i)[..., None]
    span = np.cumsum(np.where(later, part.log_g[..., :, None, :], 0), axis=-3)
    D = np.where(same[..., None], np.exp(np.where(same[..., None], span, 0)), 0)
    c = SimpleNamespace(q=part.q, k=part.k, D=D, before=before, log_g=part.log_g)
    c.G = np.cumsum(np.where(part.resets[..., None], 0, part.log_g), axis=-2)
    c.tri = np.where(same[..., None], np.ones_like(D), 0)
    unbroken = (number == 0)[..., None]
    c.E = np.where(unbroken, np.exp(np.where(unbroken, given.sums(c), 0)), 0)
    return c


def _chunk(part: Given, S, before, given):
    c, new = _decays(part, before, given), part.v
    if part.beta is not None:
        beta = part.beta[..., None]
        T = given.inverse(given.strict(beta * scored(c.k, c.k, given.of_L(c))))
        U = T @ (given.beta_of_U(beta) * part.v)
        W = T @ (given.beta_of_W(beta) * given.keys_of_W(c))
        new = given.new(U, given.W(W, c), S)
    P = given.up_to(scored(c.q, c.k, given.of_P(c)))
    y = given.queries(c) @ S + P @ new
    return y, given.carried(S, c) + np.swapaxes(given.keys_to_end(c), -1, -2) @ new


def by_chunks(g: Given, chunk: int, **parts):
    """The outputs and the last state; each keyword replaces a part of `RIGHT` by a wrong one."""
    given = SimpleNamespace(**{**vars(RIGHT), **parts})
    S, y, size = g.S0, [], min(chunk, LONGEST)
    for first in range(0, g.q.shape[-2], size):
        part = g.at(slice(first, first + size))
        part = part.but(resets=given.seen(part.resets))
        before = g.log_g[..., :first, :].sum(-2, keepdims=True)
        more, S = _chunk(part, given.start(S, first, g, size), before, given)
        S = given.keep(S)
        y.append(more)
    return np.concatenate(y, axis=-2), S


def _in_form(op):
    """Turn wrong(right, given) into a program of an operator; `right` is `by_chunks`."""

    def adapt(wrong):
        def program(right, *args, chunk=LONGEST):
            return form(op, lambda g: wrong(partial(by_chunks, chunk=chunk), g))(*args)

        return program

    return adapt


def in_each() -> InEach:
    """Planted bugs of operators by chunks."""
    return InEach(in_any_form(_in_form))


def but_for(**parts):
    """The program with some of its parts replaced."""
    return lambda right, g: right(g, **parts)
