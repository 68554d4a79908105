"""Building blocks of the planted bugs of state-space duality: programs with replaceable parts.

A bug is written once, as wrong(right, given) -> y, S with `recurrence` as the right program, and
planted in the named operators; a mapping changes arguments of each operator.
"""

from collections import namedtuple

import numpy as np

from refssm.conformance.planted.ssd.forms import form
from refssm.conformance.planted.ssd.operators import QUAD, STEP


class SsdArguments(namedtuple("SsdArguments", "x log_a B C S0 resets chunk")):
    """The arguments of all operators together."""

    def but(self, **changes):
        """The same arguments with some changes."""
        return self._replace(**changes)

    def at(self, steps):
        """The same arguments at some steps only."""
        x, B, C = (a[..., steps, :] for a in (self.x, self.B, self.C))
        return self.but(x=x, log_a=self.log_a[..., steps], B=B, C=C, resets=self.resets[..., steps])


def in_form(op):
    """Turn wrong(right, given) into a program of an operator; the quadratic form is one chunk."""

    def adapt(wrong):
        def whole(x, *given):
            g = SsdArguments(x, *given)
            return wrong(recurrence, g.but(chunk=max(x.shape[-2], 1)) if op in QUAD else g)

        program = _step(whole) if op in STEP else form(op, whole)
        return lambda right, *args, **statics: program(*args, **statics)

    return adapt


def _step(whole):
    """A single step as a sequence of length 1."""

    def forward(x, log_a, B, C, S):
        x, B, C = (a[..., None, :] for a in (x, B, C))
        y, S_next = whole(x, log_a[..., None], B, C, S, np.zeros(1, bool), 1)
        return y[..., 0, :], S_next

    return forward


def _same(x, *_):
    return x


def recurrence(g, *, a=None, keep=_same, carry=_same, read=_same):
    """The recurrence; each keyword replaces a part by a wrong one.

    `a` replaces the decays. `keep(a_t S_{t-1})`, `carry(a_t S_{t-1}, t, S_{t-1})` and `read(S_t,
    S_{t-1}, a_t S_{t-1})` change states.
    """
    S, y, a = g.S0, [], np.exp(g.log_a) if a is None else a
    for t in range(g.x.shape[-2]):
        before = carry(keep(a[..., t, None, None] * S), t, S)
        before, S = (np.where(g.resets[..., t, None, None], 0, M) for M in (before, S))
        after = before + g.x[..., t, :, None] * g.B[..., t, None, :]
        y.append(np.einsum("...pn,...n->...p", read(after, S, before), g.C[..., t, :]))
        S = after
    return np.stack(y, axis=-2), S


def chunkwise(g, *, inside=recurrence, keep=_same, carry=_same, read=_same, end=_same, seen=_same):
    """Chunks from zero states plus the carry with its decay; each keyword replaces a part.

    `keep(S)` and `carry(S, k, before)` change the state passed to chunk k, `read` and `end` the
    logarithm of its decay at each step and at the end, `seen` the steps that it still reaches.
    """
    S, y, before = g.S0, [], g.S0
    for k, start in enumerate(range(0, g.x.shape[-2], g.chunk)):
        piece = g.at(slice(start, start + g.chunk))
        own, ended = inside(piece.but(S0=np.zeros_like(g.S0)))
        sums, unbroken = np.cumsum(piece.log_a, axis=-1), seen(np.cumsum(piece.resets, -1) == 0)
        if k:
            S, before = carry(keep(S), k, before), S
        told = np.exp(read(sums, piece.log_a))[..., None] * (piece.C @ turned(S))
        y.append(own + np.where(unbroken[..., None], told, 0))
        carried = np.exp(end(sums, piece.log_a)[..., -1, None, None]) * S
        S = np.where(unbroken[..., -1, None, None], carried, 0) + ended
    batch = np.broadcast_shapes(*(piece.shape[:-2] for piece in y))
    return np.concatenate([np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in y], axis=-2), S


def but_for(**places):
    """The right program with some of its parts replaced."""
    return lambda right, *args: right(*args, **places)


def by_chunks(**places):
    """Chunks with some of their parts replaced."""
    return lambda right, g: chunkwise(g, **places)


def output(change):
    """Wrong outputs, change(y, given), with the right state."""

    def program(right, g):
        y, S = right(g)
        return change(y, g), S

    return program


def state_as(change):
    """The right outputs, with the last state for changed arguments, change(given)."""
    return lambda right, g: (right(g)[0], right(change(g))[1])


def ended_as(change):
    """Chunks whose part of their last state is computed for changed arguments, change(given)."""
    return by_chunks(inside=lambda g: state_as(change)(recurrence, g))


def earlier(a, axis=-1):
    """a one step earlier along an axis, with zeros first."""
    late = np.roll(a, 1, axis=axis)
    late[(*(slice(None),) * (a.ndim + axis), slice(0, 1))] = 0
    return late


def turned(a):
    """The last two axes exchanged."""
    return np.swapaxes(a, -1, -2)


def turned_if_square(S):
    """The state transposed if p = n."""
    return turned(S) if S.shape[-1] == S.shape[-2] else S


def zero(a):
    """Zeros, except where there is NaN."""
    return 0 * a


def unbroken(g):
    """The arguments without resets."""
    return g.but(resets=np.zeros_like(g.resets))
