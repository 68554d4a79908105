"""What the planted bugs of state-space duality are made from: right programs with open places.

A bug is written once, as whole(x, log_a, B, C, S0, resets, chunk) -> y, S, and planted in the
operators that it is named for.
"""

import numpy as np

from refssm._operator import Operator
from refssm.conformance.honest.ssd.forms import form
from refssm.conformance.planted import Deviation

ARGUMENTS = ("x", "log_a", "B", "C", "S0", "resets", "chunk")


def planting():
    """An empty list of planted bugs, and what fills it."""
    bugs: list[Deviation] = []

    def planted(name, what, operators, caught_by="value", dtype="float32"):
        operators = (operators,) if isinstance(operators, Operator) else operators

        def register(whole):
            for op in operators:
                check = f"{caught_by}[{dtype}]"
                bugs.append(Deviation(op.name, name, check, what, form(op, whole)))
            return whole

        return register

    return bugs, planted


def recurrence(x, a, B, C, S0, resets, *, carry=None, read=None):
    """The recurrence; `carry(t, a_t S_{t-1}, S_{t-1})` and `read(t, S_t, S_{t-1})` change it."""
    S, y = S0, []
    for t in range(x.shape[-2]):
        before = a[..., t, None, None] * S
        before = before if carry is None else carry(t, before, S)
        before = np.where(resets[..., t, None, None], 0, before)
        after = before + x[..., t, :, None] * B[..., t, None, :]
        seen = after if read is None else read(t, after, S)
        y.append(np.einsum("...pn,...n->...p", seen, C[..., t, :]))
        S = after
    return np.stack(y, axis=-2), S


def right(x, log_a, B, C, S0, resets, chunk=None, **places):
    """The recurrence without a bug, to plant one around; whatever the chunk."""
    del chunk
    return recurrence(x, np.exp(log_a), B, C, S0, resets, **places)


def changing(**changes):
    """The right program on changed arguments, each a function of its own value."""

    def whole(*args):
        given = dict(zip(ARGUMENTS, args, strict=True))
        return right(**{**given, **{name: f(given[name]) for name, f in changes.items()}})

    return whole


def earlier(a, axis):
    """What was there one step before along an axis, zeros first."""
    late = np.roll(a, 1, axis=axis)
    late[(*(slice(None),) * (a.ndim + axis), slice(0, 1))] = 0
    return late


def chunkwise(x, log_a, B, C, S0, resets, chunk, *, inside=right, read=None, end=None, carry=None,
              seen=None):  # fmt: skip
    """Chunks from rest and the carry with its decay: each of these is a place for a bug.

    `read` and `end` change how far the state before has decayed at each step and at the end (a
    log), `carry(k, S, before)` the state handed to chunk k, `seen` whom it still reaches.
    """
    S, y, before = S0, [], S0
    for k, start in enumerate(range(0, x.shape[-2], chunk)):
        w = slice(start, start + chunk)
        piece = x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]
        own, ended = inside(*piece, np.zeros_like(S0), resets[..., w])
        sums, unbroken = np.cumsum(piece[1], axis=-1), np.cumsum(resets[..., w], axis=-1) == 0
        unbroken = unbroken if seen is None else seen(unbroken)
        if carry is not None and k:
            S, before = carry(k, S, before), S
        reading, ending = (sums if f is None else f(sums, piece[1]) for f in (read, end))
        told = np.exp(reading)[..., None] * (piece[3] @ np.swapaxes(S, -1, -2))
        y.append(own + np.where(unbroken[..., None], told, 0))
        carried = np.exp(ending[..., -1, None, None]) * S
        S = np.where(unbroken[..., -1, None, None], carried, 0) + ended
    return np.concatenate(_same_batch(y), axis=-2), S


def _same_batch(pieces):
    """Pieces of time with the batch axes of all."""
    batch = np.broadcast_shapes(*(piece.shape[:-2] for piece in pieces))
    return [np.broadcast_to(piece, (*batch, *piece.shape[-2:])) for piece in pieces]
