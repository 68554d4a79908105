"""Calling an implementation once and saying what happened: the same in the child and in process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from refssm._operator import Operator
from refssm.conformance.plugin import sentence

EARLIER = -1  # among the aliased: the output of an earlier call


@dataclass(frozen=True)
class Outcome:
    """What one call came to. status: ok, declined, malformed, raised, crashed or hung."""

    status: str
    outputs: tuple = ()
    message: str = ""
    changed: tuple[int, ...] = ()  # arguments that the call wrote to
    aliased: tuple[int, ...] = ()  # arguments whose memory an output shares
    notes: tuple[str, ...] = field(default=())


def call(
    function: Callable,
    op: Operator,
    arrays,
    statics,
    *,
    vjp=False,
    sliced=False,
    view="",
    again=False,
):
    """Call `function` on views of `arrays`; outputs become NumPy arrays, exceptions a sentence.

    With `again` it is called once more: the second result must have memory of its own.
    """
    ranks = [len(dims) for dims in op.input_dims]
    count = len(op.outputs)
    if vjp:
        ranks, count = [len(d) for d in op.output_dims] + ranks, len(ranks)
    views = [VIEWS[view](a) for a in arrays]
    before = [a.copy() for a in views]
    try:
        with np.errstate(all="ignore"):
            if sliced:
                outputs = _slice_by_slice(function, views, statics, ranks, count, vjp)
                if vjp:  # what the slices share is summed over them
                    primals = views[len(op.outputs) :]
                    outputs = tuple(map(_summed, outputs, primals))
            else:
                outputs = _outputs(function(*views, **statics), count, vjp)
    except NotImplementedError as error:
        return Outcome("declined", message=sentence(error))
    except _WrongOutputs as error:
        return Outcome("malformed", message=str(error))
    except (Exception, SystemExit, GeneratorExit) as error:
        return Outcome("raised", message=f"raised {sentence(error)}")
    changed = tuple(
        i for i, (a, b) in enumerate(zip(views, before, strict=True)) if not _same(a, b)
    )
    aliased = [i for i, a in enumerate(views) if any(_share(a, y) for y in outputs) and not sliced]
    if again and not sliced:
        kept = [y for y in outputs if isinstance(y, np.ndarray)]
        later = function(*(a.copy() for a in views), **statics)
        later = later if isinstance(later, tuple | list) else (later,)
        if any(_share(y, other) for y in kept for other in later):
            aliased.append(EARLIER)
    return Outcome("ok", tuple(map(_plain, outputs)), changed=changed, aliased=tuple(aliased))


def _outputs(returned, count: int, vjp: bool) -> tuple:
    """The outputs as a tuple; a single output comes bare, a VJP's are always a tuple."""
    if count == 1 and not vjp:
        return (_array(returned),)
    if not isinstance(returned, tuple | list) or len(returned) != count:
        got = f"{len(returned)}" if isinstance(returned, tuple | list) else _name(returned)
        raise _WrongOutputs(f"returned {got}, want a tuple of {count}")
    return tuple(_array(y) for y in returned)


class _WrongOutputs(TypeError):
    """The number of outputs is wrong."""


def _array(y):
    """An array or anything that says how to become one; lists and None stay what they are."""
    if isinstance(y, np.ndarray):
        return y
    if hasattr(y, "__array__"):
        return np.asarray(y)
    return y


def _plain(y):
    """What may cross the pipe: a native contiguous array, or the name of the type."""
    if isinstance(y, np.ndarray) and y.dtype.kind in "biufc":
        return np.array(y, dtype=y.dtype.newbyteorder("="), order="C", subok=False)
    return Unusable(f"array of {y.dtype}" if isinstance(y, np.ndarray) else _name(y))


@dataclass(frozen=True)
class Unusable:
    """Stands for an output that is no numeric array."""

    type: str


def _name(thing):
    return type(thing).__name__


def _slice_by_slice(function, arrays, statics, ranks, count, vjp):
    """Call on every core slice of the broadcast batch and stack the results."""
    batch = np.broadcast_shapes(
        *(a.shape[: a.ndim - r] for a, r in zip(arrays, ranks, strict=True))
    )
    cores = [
        np.broadcast_to(a, batch + a.shape[a.ndim - r :])
        for a, r in zip(arrays, ranks, strict=True)
    ]
    rows = [
        _outputs(
            function(*(_own(a, c, i) for a, c in zip(arrays, cores, strict=True)), **statics),
            count,
            vjp,
        )
        for i in np.ndindex(*batch)
    ]
    if any(not isinstance(y, np.ndarray) for row in rows for y in row):
        return rows[0]
    stacked = [np.stack(column) for column in zip(*rows, strict=True)]
    return tuple(y.reshape(batch + y.shape[1:]) for y in stacked)


def _own(a, core, i):
    """One slice: a view where the argument has the whole batch, so that writing to it is seen."""
    return a[i] if a.shape == core.shape else core[i].copy()


def _summed(gradient, primal):
    """A gradient of every slice as one of the argument that they share."""
    if not isinstance(gradient, np.ndarray):
        return gradient
    extra = max(gradient.ndim - primal.ndim, 0)
    stretched = (i for i, n in enumerate(primal.shape) if n == 1 < gradient.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    return gradient.sum(axis=axes).reshape(primal.shape) if axes else gradient


def _same(a, b):
    """Bitwise equality, NaN equal to itself."""
    return np.array_equal(a, b, equal_nan=True)


def _share(a, y):
    return isinstance(y, np.ndarray) and a.size > 0 and y.size > 0 and np.may_share_memory(a, y)


def _strided(a):
    """Every other entry of a wider array, along the last axis."""
    wide = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype) if a.ndim else a.copy()
    if a.ndim:
        wide[..., ::2] = a
        wide[..., 1::2] = np.nan
    return wide[..., ::2] if a.ndim else wide


def _reversed(a):
    """Negative strides on every axis."""
    flip = (slice(None, None, -1),) * a.ndim
    return np.ascontiguousarray(a[flip])[flip]


def _transposed(a):
    """Column-major memory."""
    return np.asfortranarray(a)


def _offset(a):
    """Contiguous, one element into a larger buffer: aligned to the element and no more."""
    buffer = np.full(a.size + 1, np.nan, a.dtype)
    buffer[1:] = a.ravel()
    return buffer[1:].reshape(a.shape)


def _expanded(a):
    """Stride 0 along every axis that holds one value throughout."""
    index = tuple(
        slice(0, 1) if n > 1 and (np.take(a, [0], axis=i) == a).all() else slice(None)
        for i, n in enumerate(a.shape)
    )
    return np.broadcast_to(a[index], a.shape)


def _readonly(a):
    """The same values, not writeable."""
    frozen = a.copy()
    frozen.flags.writeable = False
    return frozen


VIEWS = {
    "": lambda a: a,
    "every other entry": _strided,
    "negative strides": _reversed,
    "column-major": _transposed,
    "offset in a buffer": _offset,
    "expanded": _expanded,
    "read-only": _readonly,
}
