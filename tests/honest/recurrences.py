"""Honest forms of every recurrence that is declared by its step, made for all of them at once.

`forms_of(RECURRENCE)`: one step after the other in plain loops, and by other forms.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from honest import Honest
from refssm._declaration.recurrence import Recurrence
from refssm._declaration.stepping import Steps
from refssm.catalog import OPERATORS


def forms_of(recurrence: Recurrence, step=None) -> list[Honest]:
    """Programs for the forms by pieces; `step` has the step and its VJP if it declares none."""
    ops = {op.name.removeprefix(recurrence.name): op.name for op in recurrence.operators}
    step = step or recurrence.step
    assert step, f"{recurrence.name}: its step is needed"
    made = _Programs(recurrence, recurrence.by_steps(*step))
    programs = {
        "_packed_stateful": made.of_sequences(),
        "_packed_from": made.of_sequences(),
        "_states": made.of_places(),
        "_reversed": made.of_reverse(),
    }
    return [
        Honest(ops[form], name, *functions)
        for form, named in programs.items()
        if form in ops
        for name, functions in named.items()
    ]


class _Programs:
    def __init__(self, recurrence: Recurrence, steps: Steps):
        self.steps, self.count = steps, len(recurrence.inputs)
        by_name = {op.name: op for op in OPERATORS}
        kind = "from" if steps.only_states else "stateful"
        self.stateful = by_name[f"{recurrence.name}_{kind}"]
        self.plain = by_name[recurrence.name]

    def of_sequences(self) -> dict:
        """Packed sequences with a state each."""
        return {
            "by_steps": (self._sequences_by_steps, self._sequences_by_steps_vjp),
            "one_call_each": (self._sequences_by_calls,),
        }

    def of_places(self) -> dict:
        """States at places."""
        return {
            "by_steps": (self._places_by_steps, self._places_by_steps_vjp),
            "from_the_start": (self._places_from_the_start,),
        }

    def of_reverse(self) -> dict:
        """Reverse time."""
        return {"by_steps": (self._reverse_by_steps, self._reverse_by_steps_vjp)}

    def _cut(self, arguments, window):
        pairs = zip(arguments, self.steps.dims, strict=True)
        return [
            x[(..., window, *[slice(None)] * (len(d) - d.index("l") - 1))] if "l" in d else x
            for x, d in pairs
        ]

    def _of(self, args):
        """Cotangents, arguments, parts of the state, and ends or places."""
        *given, marks = args
        parts = len(self.steps.state)
        first = len(given) - self.count - parts
        return given[:first], given[first:-parts], given[-parts:], marks

    def _one(self, states, i):
        """The parts of state number i."""
        pairs = zip(states, self.steps.state, strict=False)
        return [x[(..., i, *[slice(None)] * len(dims))] for x, dims in pairs]

    def _together(self, parts):
        return tuple(parts) if len(self.steps.state) > 1 else parts[0]

    def _cut_output(self, y, window):
        return y[(..., window, *[slice(None)] * (len(self.steps.out) - 1))]

    def _joined(self, pieces, arguments):
        """Outputs of pieces as one array."""
        if not pieces:
            return self.steps.run(arguments, None, None)[0].copy()
        return np.concatenate(pieces, axis=-len(self.steps.out))

    def _stacked(self, states):
        """Each part of the states, which are lists of parts."""
        pairs = zip(zip(*states, strict=True), self.steps.state, strict=True)
        return [np.stack(part, axis=-len(dims) - 1) for part, dims in pairs]

    def _result(self, y, states, like):
        """What the form returns."""
        if self.steps.only_states:
            return y
        if not states:
            batch, dims = y.shape[: y.ndim - len(self.steps.out)], self.steps.state
            cores = [x.shape[x.ndim - len(d) - 1 :] for x, d in zip(like, dims, strict=True)]
            return y, *(np.zeros((*batch, *c), x.dtype) for x, c in zip(like, cores, strict=True))
        return y, *self._stacked(states)

    def _sequences_by_steps(self, *args, **statics):
        """The state of the next sequence taken wherever one begins, in a single loop."""
        _, arguments, starts, ends = self._of(args)
        y, last = [], []
        for i, window in enumerate(map(slice, [0, *ends[:-1]], ends)):
            piece, state = self._cut(arguments, window), self._together(self._one(starts, i))
            found = self.steps.run(piece, state, None, **statics)
            y.append(found[0])
            last.append(found[1:])
        return self._result(self._joined(y, arguments), last, starts)

    def _sequences_by_steps_vjp(self, *args, **statics):
        """The same backwards; gradients of what all share are added from the last to the first."""
        (dy, *dstates), arguments, starts, ends = self._of(args)
        found = []
        for i, window in enumerate(map(slice, [0, *ends[:-1]], ends)):
            given = [self._cut_output(dy, window), *self._one(dstates, i)]
            piece, state = self._cut(arguments, window), self._together(self._one(starts, i))
            found.append(self.steps.back(given, piece, state, None, **statics))
        if not found:
            return *map(np.zeros_like, arguments), *map(np.zeros_like, starts), None
        states = self._stacked([gradients[self.count :] for gradients in found])
        return *self._gathered(found), *states, None

    def _sequences_by_calls(self, *args, **statics):
        """One call of the compiled form from a state for each sequence."""
        _, arguments, starts, ends = self._of(args)
        y, last = [], []
        for i, (first, end) in enumerate(pairwise([0, *ends])):
            piece = self._cut(arguments, slice(first, end))
            found = self.stateful.implementation("jit")(*piece, *self._one(starts, i), **statics)
            found = found if isinstance(found, tuple) else (found,)
            y.append(found[0])
            last.append(found[1:])
        return self._result(self._joined(y, arguments), last, starts)

    def _places_by_steps(self, *args, **statics):
        """All states of a loop, and some of them."""
        _, arguments, start, places = self._of(args)
        state = self._together(start)
        _, before, after = self.steps.states(arguments, state, None, **statics)
        y = self.steps.run(arguments, state, None, **statics)[0].copy()
        states, kinds = [*before, after], [x.dtype for x in after]
        kept = [[*map(np.ndarray.astype, states[k], kinds)] for k in places]
        return self._result(y, kept, self._numbered(start))

    def _places_by_steps_vjp(self, *args, **statics):
        """From the last piece to the first, the cotangent of each place added where it is."""
        (dy, *dstates), arguments, start, places = self._of(args)
        windows = [slice(*pair) for pair in pairwise([0, *places, dy.shape[-len(self.steps.out)]])]
        states: list[Any] = [start]
        for window in windows:
            piece, before = self._cut(arguments, window), self._together(states[-1])
            states.append(self.steps.states(piece, before, None, **statics)[-1])
        carried = [*map(np.zeros_like, states[-1])]
        found: list[tuple] = []
        for i in reversed(range(len(windows))):
            given = self._cut_output(dy, windows[i]), *carried
            piece, before = self._cut(arguments, windows[i]), self._together(states[i])
            gradients = self.steps.back(given, piece, before, None, **statics)
            carried = gradients[self.count :]
            carried = [*map(np.add, self._one(dstates, i - 1), carried)] if i else carried
            found.append(gradients)
        return *self._gathered(found[::-1]), *carried, None

    def _places_from_the_start(self, *args, **statics):
        """The form from a state, again from the start for each place."""
        _, arguments, start, places = self._of(args)
        function = self.stateful.implementation("jit")
        y, *_ = function(*arguments, *start, **statics)
        found = [function(*self._cut(arguments, slice(k)), *start, **statics)[1:] for k in places]
        return self._result(y, found, self._numbered(start))

    def _numbered(self, start):
        """The parts of a state, with an axis for the numbers of several states."""
        pairs = zip(start, self.steps.state, strict=True)
        return [x[(..., None, *[slice(None)] * len(dims))] for x, dims in pairs]

    def _reverse_by_steps(self, *args, **statics):
        """A loop from the end."""
        y = self.steps.run(self._cut(args, slice(None, None, -1)), None, None, **statics)[0]
        return self._cut_output(y, slice(None, None, -1)).copy()

    def _reverse_by_steps_vjp(self, dy, *arguments, **statics):
        """The adjoint of that loop goes forward."""
        turned = slice(None, None, -1)
        given = [self._cut_output(dy, turned)], self._cut(arguments, turned)
        gradients = self.steps.back(*given, None, None, **statics)[: self.count]
        return tuple(x.copy() for x in self._cut(gradients, turned))

    def _gathered(self, found):
        """Gradients joined along time, or summed from the last piece to the first."""
        parts = zip(list(zip(*found, strict=True))[: self.count], self.steps.dims, strict=True)
        return [
            np.concatenate(part, axis=dims.index("l") - len(dims))
            if "l" in dims
            else sum(part[-2::-1], part[-1])
            for part, dims in parts
        ]
