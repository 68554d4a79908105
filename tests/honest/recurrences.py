"""Honest forms of every recurrence that is declared by its step, made for all of them at once.

`forms_of(RECURRENCE)`: one step after the other in plain loops, and by other forms.
"""

from itertools import pairwise

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

    def _one(self, states, i):
        return states[(..., i, *[slice(None)] * len(self.steps.state))]

    def _cut_output(self, y, window):
        return y[(..., window, *[slice(None)] * (len(self.steps.out) - 1))]

    def _together(self, pieces, arguments):
        """Outputs of pieces as one array."""
        if not pieces:
            return self.steps.run(arguments, None, None)[0].copy()
        return np.concatenate(pieces, axis=-len(self.steps.out))

    def _stacked(self, states):
        return np.stack(states, axis=-len(self.steps.state) - 1)

    def _result(self, y, states, like):
        """What the form returns."""
        if self.steps.only_states:
            return y
        if not states:
            batch = y.shape[: y.ndim - len(self.steps.out)]
            core = like.shape[like.ndim - len(self.steps.state) - 1 :]
            return y, np.zeros((*batch, *core), like.dtype)
        return y, self._stacked(states)

    def _sequences_by_steps(self, *args, **statics):
        """The state of the next sequence taken wherever one begins, in a single loop."""
        *arguments, starts, ends = args
        y, last = [], []
        for i, window in enumerate(map(slice, [0, *ends[:-1]], ends)):
            piece, state = self._cut(arguments, window), self._one(starts, i)
            found = self.steps.run(piece, state, None, **statics)
            y.append(found[0])
            last.append(found[-1])
        return self._result(self._together(y, arguments), last, starts)

    def _sequences_by_steps_vjp(self, *args, **statics):
        """The same backwards; gradients of what all share are added from the last to the first."""
        cotangents, (*arguments, starts, ends) = args[: -self.count - 2], args[-self.count - 2 :]
        found = []
        for i, window in enumerate(map(slice, [0, *ends[:-1]], ends)):
            given = [self._cut_output(cotangents[0], window)]
            given += [self._one(dx, i) for dx in cotangents[1:]]
            piece, state = self._cut(arguments, window), self._one(starts, i)
            found.append(self.steps.back(given, piece, state, None, **statics))
        if not found:
            return *map(np.zeros_like, arguments), np.zeros_like(starts), None
        states = self._stacked([gradients[-1] for gradients in found])
        return *self._gathered(found), states, None

    def _sequences_by_calls(self, *args, **statics):
        """One call of the compiled form from a state for each sequence."""
        *arguments, starts, ends = args
        pairs = []
        for i, (first, end) in enumerate(pairwise([0, *ends])):
            piece = self._cut(arguments, slice(first, end))
            found = self.stateful.implementation("jit")(*piece, self._one(starts, i), **statics)
            pairs.append(found if isinstance(found, tuple) else (found, None))
        return self._result(self._together([y for y, _ in pairs], arguments),
                            [x for _, x in pairs], starts)  # fmt: skip

    def _places_by_steps(self, *args, **statics):
        """All states of a loop, and some of them."""
        *arguments, start, places = args
        _, before, after = self.steps.states(arguments, start, None, **statics)
        y = self.steps.run(arguments, start, None, **statics)[0].copy()
        states = [*before, after]
        kept = [states[k].astype(after.dtype) for k in places]
        return self._result(y, kept, start[..., None, :])

    def _places_by_steps_vjp(self, *args, **statics):
        """From the last piece to the first, the cotangent of each place added where it is."""
        dy, dx, *arguments, start, places = args
        windows = [slice(*pair) for pair in pairwise([0, *places, dy.shape[-len(self.steps.out)]])]
        states = [start]
        for window in windows:
            piece = self._cut(arguments, window)
            states.append(self.steps.states(piece, states[-1], None, **statics)[-1])
        carried, found = np.zeros_like(states[-1]), []
        for i in reversed(range(len(windows))):
            given = self._cut_output(dy, windows[i]), carried
            piece = self._cut(arguments, windows[i])
            *gradients, carried = self.steps.back(given, piece, states[i], None, **statics)
            carried = self._one(dx, i - 1) + carried if i else carried
            found.append((*gradients, None))
        return *self._gathered(found[::-1]), carried, None

    def _places_from_the_start(self, *args, **statics):
        """The form from a state, again from the start for each place."""
        *arguments, start, places = args
        function = self.stateful.implementation("jit")
        y, _ = function(*arguments, start, **statics)
        found = [function(*self._cut(arguments, slice(k)), start, **statics)[1] for k in places]
        return self._result(y, found, start[..., None, :])

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
