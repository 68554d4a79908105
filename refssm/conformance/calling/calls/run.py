"""How a call is made: forward or VJP, batched or slice by slice, and in which layout."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from refssm._declaration.layout import GROUPS, Layout, arranged, canonical, restored, sizes_of
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.calling.adapters.numpy_arrays import Unusable, named
from refssm.conformance.calling.calls.fitting import fitting, misfit, place_of
from refssm.conformance.calling.implementation import Found
from refssm.conformance.number_types import NumberType

LATE = (
    "is not finished when the call returns: it is computed on a stream that the caller's current "
    "stream does not wait for"
)


class WrongOutputs(TypeError):
    """Wrong number of outputs, an output with wrong axes, or one that is not finished."""


class Misfit(WrongOutputs):
    """An output does not fit the declared layout."""


class KernelFailed(Exception):
    """Work that the call queued on a device failed; the cause is the device's exception."""


class CalledOnce:
    """How a call is made: forward or VJP, batched or slice by slice, and in which layout."""

    def __init__(self, found: Found, kind: NumberType, vjp: bool, sliced: bool):
        op = found.op
        self.found, self.made, self.kind, self.vjp = found, found.adapter, kind, vjp
        self.slices = sliced
        self.function: Callable = found.forward
        if vjp and found.vjp is not None:
            self.function = found.vjp
        asked = [not (vjp and n in op.discrete) for n in (op.inputs if vjp else op.outputs)]
        self.returned = len(asked)
        self.names = [f"d{name}" for name in op.inputs] if vjp else list(op.outputs)
        self.asked = [i for i, ask in enumerate(asked) if ask]  # flags have no gradient
        self.names = [self.names[i] for i in self.asked]
        self.cotangents = len(op.outputs) if vjp else 0
        self.more: dict = {}  # an argument that the operator does not have
        self.touched: set[int] = set()  # shared arguments that the call of a slice wrote to
        self._lay_out(op, found.layout, canonical(op))

    def _lay_out(self, op: Operator, layout: Layout | None, usual: Layout) -> None:
        """The axes of arguments and answers: `usual` before the call, and the author's."""
        self.op, self.layout, vjp = op, layout, self.vjp
        self.slices = bool(layout.omitted) if layout else self.slices
        self.usual = _arguments(usual, vjp)
        self.axes = _arguments(layout, vjp) if layout else self.usual
        ranks = _arguments(Layout(op.input_dims, op.output_dims), vjp)
        self.ranks = [len(axes) for axes in (self.axes if layout else ranks)]
        of = layout or usual
        self.answers = [(usual.inputs if vjp else usual.outputs)[i] for i in self.asked]
        self.answer_axes = [(of.inputs if vjp else of.outputs)[i] for i in self.asked]

    def _with_groups(self, layout: Layout, arrays, statics) -> None:
        """Arrays of the catalog have groups, which this layout lacks: loop over more than one."""
        op = next((op for op in OPERATORS if op.name == self.op.name), self.op)
        if GROUPS not in op.batch_names or self.found.declared.adapters:
            return
        usual = canonical(op)
        if sizes_of(op, _arguments(usual, self.vjp), arrays, statics).get(GROUPS, 1) > 1:
            self._lay_out(op, replace(layout, omitted=(GROUPS, *layout.omitted)), usual)
        else:
            inputs, outputs = (
                tuple(map(_of_one_group, side)) for side in (usual.inputs, usual.outputs)
            )
            self._lay_out(self.op, layout, Layout(inputs, outputs))

    def entering(self, arrays, statics) -> list[np.ndarray]:
        """The arguments in the author's layout, preceded by the axes that are looped over."""
        if self.layout is None:
            return list(arrays)
        if any(a.ndim > len(usual) for a, usual in zip(arrays, self.usual, strict=True)):
            self._with_groups(self.layout, arrays, statics)
        sizes, batch = self.sizes(arrays, statics), self.op.batch_names
        entering = []
        for a, usual, axes in zip(arrays, self.usual, self.axes, strict=True):
            if a.ndim > len(usual):
                raise WrongOutputs(f"shape {a.shape} has more axes than the layout {self.layout}")
            a = a.reshape((1,) * (len(usual) - a.ndim) + a.shape)
            pairs = zip(usual, a.shape, strict=True)
            shape = [sizes[axis] if axis in batch else int(n) for axis, n in pairs]
            wanted = (*self.looped(usual), *axes)
            entering.append(arranged(np.broadcast_to(a, shape), usual, wanted))
        return entering

    def looped(self, usual) -> tuple[str, ...]:
        """The batch axes that the layout omits; "1" if an argument lacks the axis."""
        assert self.layout is not None
        return tuple(axis if axis in usual else "1" for axis in self.layout.omitted)

    def sizes(self, arrays, statics) -> dict[str, int]:
        """The size of each axis; batch axes that no argument has are of length one."""
        op = self.op
        return dict.fromkeys(op.batch_names, 1) | sizes_of(op, self.usual, arrays, statics)

    def give_lengths(self, arrays, statics, lengths=None) -> None:
        """The declared argument for the number of steps of each row: `lengths`, or all steps."""
        if name := self.found.declared.lengths:
            if lengths is None:
                lengths = np.full(*all_steps(self.op, arrays[self.cotangents :], statics))
            self.more = {name: self.made.give(lengths, self.kind)}

    def raw(self, given, statics) -> tuple:
        """The outputs of one call, as a tuple."""
        count, statics = self.returned, {**statics, **self.more}
        if self.vjp and self.found.vjp is None:
            cotangents, primals = given[: self.cotangents], given[self.cotangents :]
            returned = self.made.pullback(self.found.forward, cotangents, primals, statics)
        else:
            returned = self.function(*given, **statics)
        if count == 1 and not (self.vjp and isinstance(returned, tuple | list)):
            return (returned,)  # a gradient of one argument may come in a tuple or alone
        if not isinstance(returned, tuple | list) or len(returned) != count:
            got = f"{len(returned)}" if isinstance(returned, tuple | list) else named(returned)
            raise WrongOutputs(f"returned {got}, want a tuple of {count}")
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
            raise KernelFailed from error
        for name, y, other in zip(self.names, taken, later, strict=True):
            if not (isinstance(y, Unusable) or np.array_equal(y, other, equal_nan=True)):
                raise WrongOutputs(f"`{name}` {LATE}")
        return taken

    def outputs(self, given, statics) -> tuple[tuple, tuple]:
        """The outputs as returned (() if called slice by slice), and as NumPy arrays."""
        if not self.slices:
            y = self.raw(given, statics)
            return y, self.taken(y)
        leads = [tuple(x.shape[: len(x.shape) - r]) for x, r in zip(given, self.ranks, strict=True)]
        batch, made = np.broadcast_shapes(*leads), self.made
        rows = []
        for i in np.ndindex(*batch):
            parts = [made.part(x, place(lead, i)) for x, lead in zip(given, leads, strict=True)]
            # copies of shared arguments: a slice that writes to them must not change the next
            own = [
                x if lead == batch else made.copied(x) for x, lead in zip(parts, leads, strict=True)
            ]
            rows.append(self.taken(self.raw(own, statics)))
            pairs = enumerate(zip(own, parts, strict=True))
            self.touched |= {j for j, (x, part) in pairs if not made.same(x, part)}
        if any(isinstance(y, Unusable) for row in rows for y in row):
            return (), tuple(rows[0])
        stacked = [np.stack(column) for column in zip(*rows, strict=True)]
        answers = tuple(y.reshape(batch + y.shape[1:]) for y in stacked)
        if self.vjp:  # gradients of shared arguments are sums over the slices
            primals = [given[self.cotangents + i].shape for i in self.asked]
            answers = tuple(summed(g, s) for g, s in zip(answers, primals, strict=True))
        return (), answers

    def leaving(self, taken, arrays, statics) -> tuple:
        """The outputs in the canonical layout."""
        if self.layout is None or any(isinstance(y, Unusable) for y in taken):
            return taken
        back, sizes = [], self.sizes(arrays, statics)
        shapes = [arrays[self.cotangents + i].shape for i in self.asked] if self.vjp else None
        for i, (y, axes, usual) in enumerate(
            zip(taken, self.answer_axes, self.answers, strict=True)
        ):
            self._refuse_misfit(i, y, sizes)
            try:
                y = restored(y, (*self.looped(usual), *axes), usual, sizes)
            except ValueError as error:
                raise Misfit(f"`{self.names[i]}` has {error}{self._place()}") from None
            shape = shapes[i] if shapes else self._shape(y, arrays)
            back.append(np.array(summed(y, shape), order="C"))
        return tuple(back)

    def _refuse_misfit(self, i: int, y, sizes) -> None:
        """Misfit for an output whose shape is not that of its declared axes."""
        assert self.layout is not None
        loops = len(self.layout.omitted) if self.slices else 0
        shape = y.shape[loops:]
        told = misfit(self.answer_axes[i], shape, sizes)
        if not told:
            return
        told += self._place()
        # a gradient has the axes of its argument
        other = None if self.vjp else fitting(self.layout, i, shape, sizes)
        raise Misfit(
            f"`{self.names[i]}` has {told}" + f"; a layout that fits: {other}" * bool(other)
        )

    def _place(self) -> str:
        """Where the function is defined, in parentheses, or ""."""
        place = place_of(self.function)
        return f" ({place})" if place else ""

    def _shape(self, y, arrays):
        """An output's shape, without leading batch axes that no argument has."""
        ranks = (
            a.ndim - sum(axis not in ("1", *self.op.batch_names) for axis in axes)
            for a, axes in zip(arrays, self.usual, strict=True)
        )
        leading = max(ranks, default=0)
        extra = len(self.op.batch_names) - leading
        return y.shape[extra:] if extra > 0 and y.shape[:extra] == (1,) * extra else y.shape


def all_steps(op: Operator, arrays, statics) -> tuple[tuple[int, ...], int]:
    """How many rows there are, as a shape, and how many steps each has."""
    return op.batch_shape(*arrays)[:1] or (1,), int(op.sizes(*arrays, **statics)[op.leading])


def _of_one_group(axes) -> tuple[str, ...]:
    """The axes with one of length 1 for the groups."""
    return tuple("1" if axis == GROUPS else axis for axis in axes)


def _arguments(layout: Layout, vjp: bool) -> tuple:
    """The axes of every argument, with those of the cotangents first for a VJP."""
    return (*layout.outputs, *layout.inputs) if vjp else layout.inputs


def place(lead, i):
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
