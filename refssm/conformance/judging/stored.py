"""Bounds of programs that keep the state in a type of fewer digits: `Budget(state="bfloat16")`.

The state is rounded to that type after each step, or after each chunk of a chunked form; all else
is computed as declared. What that adds to the error is measured on the case itself, in double
precision: `COPIES` runs of the recurrence, piece by piece, whose states are rounded to the nearest
number or at random to one of two. Their largest distance from the exact result, `ROOM` times, is
allowed beside 16·u·K. In a backward pass the cotangent of the state is rounded, too.

A program may also read a step's output from the state that it has rounded already. So the results
of a step are those of arguments that are moved by up to one rounding each; the state that goes on
is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from refssm._declaration.adapted import adapted, adapters_of
from refssm._declaration.operator import Operator
from refssm.catalog import from_state, resumed, states_in
from refssm.conformance.cases.windows import time_axes
from refssm.conformance.gauges.gauge import Cumulated, Gauges, wide
from refssm.conformance.number_types import NumberType
from refssm.conformance.standard import Standard

COPIES = 16
NEAREST = 4  # of them are rounded to nearest
ROOM = 4  # times the largest of them: of 16 errors of one size, each is seldom below a quarter


def widened(
    op: Operator, arrays, statics: Mapping, gauges: Gauges, standard: Standard, *, vjp: bool
) -> Gauges:
    """The gauges with what rounding the state adds, if the standard has a type for it."""
    nothing = not all(a.size for a in arrays)  # no step, or no state
    if standard.state is None or resumed(op) is None or nothing:
        return gauges
    run = _Run(op, [np.asarray(a) for a in wide(arrays)], dict(statics), standard.state, vjp)
    unit = standard.room * standard.u
    with np.errstate(all="ignore"):
        added = [error / unit for error in run.errors([gauge.value for gauge in gauges])]
    return tuple(map(_widened, gauges, added))


def _widened(gauge, k):
    """The gauge with `k` more in each of its bounds."""

    def more(bound: Callable | None):
        return None if bound is None else lambda: bound() + k

    form = gauge.cumulated
    if form is not None:
        form = Cumulated(lambda form=form: form.whole() + k, lambda form=form: form.of_terms() + k)
    return replace(
        gauge,
        k0=gauge.k0 + k,
        k1=gauge.k1 + k,
        derive=more(gauge.derive),
        more_copies=more(gauge.more_copies),
        cumulated=form,
    )


@dataclass(frozen=True)
class _Run:
    """A call, piece by piece, of so many copies: they are one more axis, the first."""

    op: Operator
    given: list[np.ndarray]  # cotangents first, if there are any
    statics: dict
    kind: NumberType  # of the stored state
    vjp: bool

    def errors(self, values) -> list[np.ndarray]:
        """What is added to the error of each result."""
        told = []
        for y, value in zip(self._results(), values, strict=True):
            off = np.nan_to_num(np.abs(y - value).max(0), posinf=np.inf)  # NaN: both infinite
            rows = np.sqrt((off**2).mean(-1, keepdims=True)) if off.ndim and off.size else off
            told.append(ROOM * np.maximum(off, rows))
        return told

    def _results(self) -> list[np.ndarray]:
        """The outputs, or the gradients, of all copies."""
        states, y = [self._start], []
        for piece in self._pieces:
            made = self._call(self._moved(piece), self._moved(states[-1]))
            y.append(made[0])
            states.append(self._rounded(self._last(self._call(piece, states[-1]))))
        axis = self._time(self.op.output_dims[0])
        outputs = [np.concatenate(y, axis=axis), *states[-1]][: len(self.op.outputs)]
        return self._gradients(states) if self.vjp else outputs

    def _gradients(self, states) -> list[np.ndarray]:
        """The gradients of the arguments, from the last piece to the first."""
        dy, *ends = self._cotangents
        carried, found = ends or [np.zeros_like(s) for s in states[-1]], []
        for i in range(len(self._pieces) - 1, -1, -1):
            back = [self._cut_output(dy, self._windows[i]), *carried]
            if not self._other.state_outputs:  # the output is the state
                last = back[0][..., -1:, :] + back.pop()[..., None, :]
                back = [np.concatenate([back[0][..., :-1, :], last], axis=-2)]
            before, piece = states[i], self._pieces[i]
            moved = map(self._moved, (back, piece, before))
            found.insert(0, self._pull(*moved)[: len(piece)])
            carried = self._rounded(self._pull(back, piece, before)[len(piece) :])
        parts = zip(zip(*found, strict=True), self._axes, strict=True)
        gradients = [
            np.sum(part, axis=0) if axis is None else np.concatenate(part, axis=axis)
            for part, axis in parts
        ]
        gradients += carried if from_state(self.op) else []
        return [
            g.reshape(len(g), *a.shape)
            for g, a in zip(gradients, self.given[self._count :], strict=True)
        ]

    def _call(self, piece, state) -> tuple:
        """The output of a piece, and its last states if they are outputs of their own."""
        y = self._other.reference(*piece, *state, **self.statics)
        return y if isinstance(y, tuple) else (y,)

    def _last(self, made) -> list[np.ndarray]:
        """The states after a piece."""
        return list(made[1:]) if self._other.state_outputs else [made[0][..., -1, :]]

    def _pull(self, back, piece, state) -> list[np.ndarray]:
        return list(self._other.bare_vjp(*back, *piece, *state, **self.statics))

    def _rounded(self, arrays) -> list[np.ndarray]:
        """Each array in the state's type: the first copies to nearest, the others at random."""
        told = []
        for a in arrays:
            x = np.ascontiguousarray(a).view(np.float64)
            off = self._rng.uniform(-self.kind.u, self.kind.u, x.shape)
            off[:NEAREST] = 0
            y = self.kind.rounded(x * (1 + off), real=True).astype(np.float64)
            told.append(y.view(a.dtype).reshape(a.shape))
        return told

    def _moved(self, arrays) -> list[np.ndarray]:
        """Each array with numbers moved by up to one rounding; in chunks as they are."""
        if self._size > 1:
            return list(arrays)
        return [a * (1 + self._rng.uniform(-self.kind.u, self.kind.u, a.shape)) for a in arrays]

    @cached_property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(0)

    @cached_property
    def _other(self) -> Operator:
        """The form that starts from a state."""
        other = resumed(self.op)
        assert other is not None
        return adapted(other, adapters_of(self.op))

    @cached_property
    def _count(self) -> int:
        """How many of the arrays are cotangents."""
        return len(self.op.outputs) if self.vjp else 0

    @cached_property
    def _size(self) -> int:
        """Steps of a piece."""
        return int(self.statics.get("chunk", 1))

    @cached_property
    def _batch(self) -> tuple[int, ...]:
        return self.op.batch_shape(*self.given[self._count :])

    @cached_property
    def _arguments(self) -> list[np.ndarray]:
        """The arguments without states, for each copy, with all batch axes."""
        own = self.given[self._count :]
        number = len(own) - (states_in(self.op) if from_state(self.op) else 0)
        pairs = zip(own[:number], self.op.input_dims, strict=False)
        return [self._copied(a, len(dims)) for a, dims in pairs]

    @cached_property
    def _cotangents(self) -> list[np.ndarray]:
        pairs = zip(self.given[: self._count], self.op.output_dims, strict=True)
        return [self._copied(a, len(dims)) for a, dims in pairs]

    @cached_property
    def _start(self) -> list[np.ndarray]:
        """The first states, or zeros, with all batch axes."""
        states = [*self._other.input_dims][-states_in(self._other) :]
        if from_state(self.op):
            own = self.given[-len(states) :]
        else:
            sizes = self.op.sizes(*self.given[self._count :], **self.statics)
            kind = np.result_type(*self._arguments)
            own = [
                np.zeros([sizes[d] if d in sizes else int(d) for d in ds], kind) for ds in states
            ]
        told = [self._copied(a, len(ds)) for a, ds in zip(own, states, strict=True)]
        return [
            np.broadcast_to(a, (COPIES, *self._batch, *a.shape[a.ndim - len(ds) :])).copy()
            for a, ds in zip(told, states, strict=True)
        ]

    def _copied(self, a, rank: int):
        """The array for each copy; batch axes that it lacks have length 1."""
        lead = a.shape[: a.ndim - rank]
        shape = (1,) * (len(self._batch) - len(lead)) + a.shape
        return np.broadcast_to(a.reshape(shape), (COPIES, *shape)).copy()

    @cached_property
    def _axes(self) -> list[int | None]:
        """The axis of time of each argument without states."""
        return time_axes(self.op)[: len(self._arguments)]

    @cached_property
    def _windows(self) -> list[slice]:
        steps = self.op.sizes(*self.given[self._count :], **self.statics)[self.op.leading]
        return [slice(k, min(k + self._size, steps)) for k in range(0, steps, self._size)]

    @cached_property
    def _pieces(self) -> list[list[np.ndarray]]:
        """The arguments of each piece."""
        return [
            [a if axis is None else a[(..., w, *(slice(None),) * (-axis - 1))]
             for a, axis in zip(self._arguments, self._axes, strict=True)]
            for w in self._windows
        ]  # fmt: skip

    def _time(self, dims) -> int:
        return dims.index(self.op.leading) - len(dims)

    def _cut_output(self, y, w: slice):
        return y[(..., w, *(slice(None),) * (-self._time(self.op.output_dims[0]) - 1))]
