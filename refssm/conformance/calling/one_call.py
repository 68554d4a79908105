"""Call an implementation once and describe the outcome, in the child or in this process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from refssm._layout import Layout, arranged, canonical, restored
from refssm.conformance.calling.adapters.numpy_arrays import Unusable, named
from refssm.conformance.calling.finding import sentence, short
from refssm.conformance.calling.implementation import Found
from refssm.conformance.number_types import NumberType, number_type

LATE = (
    "is not finished when the call returns: it is computed on a stream that the caller's current "
    "stream does not wait for"
)
EARLIER = -1  # in `aliased`: the output of an earlier call


class Declined(Exception):
    """The implementation does not support this case."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one call. status: ok, declined, malformed, raised, crashed or hung."""

    status: str
    outputs: tuple = ()
    message: str = ""
    changed: tuple[int, ...] = ()  # arguments that the call wrote to
    aliased: tuple[int, ...] = ()  # arguments whose memory an output shares
    notes: tuple[str, ...] = field(default=())


class _WrongOutputs(TypeError):
    """Wrong number of outputs, an output with wrong axes, or one that is not finished."""


class _KernelFailed(Exception):
    """Work that the call queued on a device failed; the cause is the device's exception."""


def call(
    found: Found,
    arrays,
    statics,
    *,
    dtype="",
    vjp=False,
    sliced=False,
    view="",
    again=False,
    late=False,
) -> Outcome:
    """Call an implementation on views of `arrays`: NumPy outputs, or an error as one sentence.

    With `again` it is called a second time; the two results must not share memory. With `late` its
    arguments are written late, on another stream than the default one.
    """
    made, kind = found.adapter, number_type(dtype or np.result_type(*(arrays or [float])))
    run = Run(found, kind, vjp, sliced)
    try:
        with made.inside(kind), np.errstate(all="ignore"):
            given = [made.give(a, kind, view) for a in run.entering(arrays)]
            before = [made.copied(x) for x in given]
            made.finish()  # what fails after this is work of the call
            with made.behind(given) if late else nullcontext(given) as given:
                outputs, taken = run.outputs(given, statics)
            later = _later(run, before, statics) if again and not run.slices else ()
            written = _written(run, given, before)
    except NotImplementedError as error:
        return Outcome("declined", message=sentence(error))
    except _WrongOutputs as error:
        return Outcome("malformed", message=str(error))
    except (Exception, SystemExit, GeneratorExit) as error:
        return _failed(made, error)
    try:
        answer = run.leaving(taken, arrays)
    except _WrongOutputs as error:
        return Outcome("malformed", message=str(error))
    shared = _aliased(made, given, outputs, later)
    return Outcome("ok", answer, changed=written, aliased=shared)


def _written(run, given, before) -> tuple[int, ...]:
    """The arguments that differ from their copies `before` the call, or were written to."""
    pairs = enumerate(zip(given, before, strict=True))
    return tuple(i for i, (x, y) in pairs if i in run.touched or not run.made.same(x, y))


def _aliased(made, given, outputs, later) -> tuple[int, ...]:
    """The arguments, and EARLIER for another call's outputs, that share memory with an output."""
    aliased = [i for i, x in enumerate(given) if any(made.share(x, y) for y in outputs)]
    if any(made.share(y, other) for y in outputs for other in later):
        aliased.append(EARLIER)
    return tuple(aliased)


def _failed(made, error: BaseException) -> Outcome:
    """The outcome of a call that raised, or whose work on a device failed."""
    queued = isinstance(error, _KernelFailed)
    cause = error.__cause__ if queued else error
    if made.ran_out(cause):
        return Outcome("raised", message=f"ran out of the device's memory: {short(f'{cause}')}")
    told = f"raised {sentence(error)}"
    if queued:
        first = next(iter(f"{cause}".splitlines()), "")
        told = f"launched a kernel that failed: {short(first)}"
    if made.lost():
        return Outcome("crashed", message=f"{told}; this process can no longer use the device")
    return Outcome("raised", message=told)


def _later(run, copies, statics) -> tuple:
    """The outputs of one more call, on copies of the arguments."""
    return run.raw([run.made.copied(x) for x in copies], statics)


class Run:
    """How a call is made: forward or VJP, batched or slice by slice, and in which layout."""

    def __init__(self, found: Found, kind: NumberType, vjp: bool, sliced: bool):
        op = found.op
        self.found, self.made, self.kind, self.vjp = found, found.adapter, kind, vjp
        self.layout = found.layout
        self.slices = bool(self.layout.omitted) if self.layout else sliced
        self.function: Callable = found.forward
        if vjp and found.vjp is not None:
            self.function = found.vjp
        usual = canonical(op)
        self.usual = _arguments(usual, vjp)
        self.axes = _arguments(self.layout, vjp) if self.layout else self.usual
        ranks = _arguments(Layout(op.input_dims, op.output_dims), vjp)
        self.ranks = [len(axes) for axes in (self.axes if self.layout else ranks)]
        of = self.layout or usual
        asked = [not (vjp and n in op.flags) for n in (op.inputs if vjp else op.outputs)]
        self.returned = len(asked)
        self.names = [f"d{name}" for name in op.inputs] if vjp else list(op.outputs)
        self.asked = [i for i, ask in enumerate(asked) if ask]  # flags have no gradient
        self.names = [self.names[i] for i in self.asked]
        self.answers = [(usual.inputs if vjp else usual.outputs)[i] for i in self.asked]
        self.answer_axes = [(of.inputs if vjp else of.outputs)[i] for i in self.asked]
        self.cotangents = len(op.outputs) if vjp else 0
        self.touched: set[int] = set()  # shared arguments that the call of a slice wrote to

    def entering(self, arrays) -> list[np.ndarray]:
        """The arguments in the author's layout, preceded by the axes that are looped over."""
        if self.layout is None:
            return list(arrays)
        sizes = self._sizes(arrays)
        entering = []
        for a, usual, axes in zip(arrays, self.usual, self.axes, strict=True):
            if a.ndim > len(usual):
                raise _WrongOutputs(f"shape {a.shape} has more axes than the layout {self.layout}")
            a = a.reshape((1,) * (len(usual) - a.ndim) + a.shape)
            shape = [sizes.get(axis, int(n)) for axis, n in zip(usual, a.shape, strict=True)]
            wanted = (*self.looped(usual), *axes)
            entering.append(arranged(np.broadcast_to(a, shape), usual, wanted))
        return entering

    def looped(self, usual) -> tuple[str, ...]:
        """The batch axes that the layout omits; "1" if an argument lacks the axis."""
        assert self.layout is not None
        return tuple(axis if axis in usual else "1" for axis in self.layout.omitted)

    def _sizes(self, arrays) -> dict[str, int]:
        """Sizes of the batch axes."""
        names = self.found.op.batch_names
        sizes: dict[str, int] = {}
        for a, usual in zip(arrays, self.usual, strict=True):
            for axis, n in zip(reversed(usual), reversed(a.shape), strict=False):
                if axis in names:
                    sizes[axis] = int(n) if n != 1 else sizes.get(axis, 1)
        return sizes

    def raw(self, given, statics) -> tuple:
        """The outputs of one call, as a tuple."""
        count = self.returned
        if self.vjp and self.found.vjp is None:
            cotangents, primals = given[: self.cotangents], given[self.cotangents :]
            returned = self.made.pullback(self.found.forward, cotangents, primals, statics)
        else:
            returned = self.function(*given, **statics)
        if count == 1 and not self.vjp:
            return (returned,)
        if not isinstance(returned, tuple | list) or len(returned) != count:
            got = f"{len(returned)}" if isinstance(returned, tuple | list) else named(returned)
            raise _WrongOutputs(f"returned {got}, want a tuple of {count}")
        return tuple(returned[i] for i in self.asked)

    def taken(self, outputs) -> tuple:
        """The outputs as NumPy arrays, as the caller's stream finds them after the call.

        They may not change when the device has finished all of its work.
        """
        made = self.made
        try:
            taken = tuple(made.take(y, self.kind) for y in outputs)
            if not made.streams:
                return taken
            made.finish()
            later = tuple(made.take(y, self.kind) for y in outputs)
        except made.faults as error:
            raise _KernelFailed from error
        for name, y, other in zip(self.names, taken, later, strict=True):
            if not (isinstance(y, Unusable) or np.array_equal(y, other, equal_nan=True)):
                raise _WrongOutputs(f"`{name}` {LATE}")
        return taken

    def outputs(self, given, statics) -> tuple[tuple, tuple]:
        """The outputs as returned (() if called slice by slice), and as NumPy arrays."""
        if not self.slices:
            y = self.raw(given, statics)
            return y, self.taken(y)
        leads = [tuple(x.shape[: len(x.shape) - r]) for x, r in zip(given, self.ranks, strict=True)]
        batch = np.broadcast_shapes(*leads)
        rows = []
        for i in np.ndindex(*batch):
            parts = [x[_place(lead, i)] for x, lead in zip(given, leads, strict=True)]
            # copies of shared arguments: a slice that writes to them must not change the next
            own = [
                x if lead == batch else self.made.copied(x)
                for x, lead in zip(parts, leads, strict=True)
            ]
            rows.append(self.taken(self.raw(own, statics)))
            pairs = enumerate(zip(own, parts, strict=True))
            self.touched |= {j for j, (x, part) in pairs if not self.made.same(x, part)}
        if any(isinstance(y, Unusable) for row in rows for y in row):
            return (), tuple(rows[0])
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        answers = tuple(y.reshape(batch + y.shape[1:]) for y in stacked)
        if self.vjp:  # gradients of shared arguments are sums over the slices
            primals = [given[self.cotangents + i].shape for i in self.asked]
            answers = tuple(summed(g, s) for g, s in zip(answers, primals, strict=True))
        return (), answers

    def leaving(self, taken, arrays) -> tuple:
        """The outputs in the canonical layout."""
        if self.layout is None or any(isinstance(y, Unusable) for y in taken):
            return taken
        back = []
        shapes = [arrays[self.cotangents + i].shape for i in self.asked] if self.vjp else None
        for i, (y, axes, usual) in enumerate(
            zip(taken, self.answer_axes, self.answers, strict=True)
        ):
            try:
                y = restored(y, (*self.looped(usual), *axes), usual)
            except ValueError as error:
                raise _WrongOutputs(f"`{self.names[i]}` has {error}") from None
            shape = shapes[i] if shapes else self._shape(y, arrays)
            back.append(np.array(summed(y, shape), order="C"))
        return tuple(back)

    def _shape(self, y, arrays):
        """An output's shape, without leading batch axes that no argument has."""
        ranks = (
            a.ndim - sum(axis not in ("1", *self.found.op.batch_names) for axis in axes)
            for a, axes in zip(arrays, self.usual, strict=True)
        )
        leading = max(ranks, default=0)
        extra = len(self.found.op.batch_names) - leading
        return y.shape[extra:] if extra > 0 and y.shape[:extra] == (1,) * extra else y.shape


def _arguments(layout: Layout, vjp: bool) -> tuple:
    """The axes of every argument, with those of the cotangents first for a VJP."""
    return (*layout.outputs, *layout.inputs) if vjp else layout.inputs


def _place(lead, i):
    """The index of slice i of the broadcast batch in an argument with leading axes `lead`."""
    return tuple(0 if n == 1 else j for n, j in zip(lead, i[len(i) - len(lead) :], strict=True))


def summed(gradient, shape):
    """The gradient summed over axes along which the argument of `shape` was broadcast."""
    if not isinstance(gradient, np.ndarray) or gradient.shape == tuple(shape):
        return gradient
    extra = max(gradient.ndim - len(shape), 0)
    if any(n not in (1, gradient.shape[extra + i]) for i, n in enumerate(shape)):
        return gradient  # the shape does not fit: the judge will report it
    stretched = (i for i, n in enumerate(shape) if n == 1 < gradient.shape[extra + i])
    axes = (*range(extra), *(extra + i for i in stretched))
    return gradient.sum(axis=axes).reshape(shape) if axes else gradient
