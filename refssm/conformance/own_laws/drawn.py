"""The case of a law: the arguments of one call, as the judge draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from refssm._declaration.implements import unknown
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.cases.windows import at_length, cut
from refssm.conformance.diagnosis.failure import call_in_words
from refssm.conformance.own_laws.arguments import Arrays, OwnCall


class DrawnCase:
    """The arguments of one call: `f(*case.arrays, **case.statics)`.

    Arrays are new at each access, so a function that writes into its arguments changes no case.
    """

    def __init__(self, call: OwnCall):
        self._call = call

    @property
    def operator(self) -> str:
        """The name of the operator."""
        return self._call.op.name

    @property
    def dtype(self) -> str:
        """The name of the judged type; float32 arrays hold the values of 16-bit types."""
        return self._call.case.type.name

    @property
    def arrays(self) -> Arrays:
        """The arguments in the catalog's order, in the layout that was asked for."""
        return self._call.shown_arguments(self._call.arrays)

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        """The arguments by name."""
        return dict(zip(self._call.op.inputs, self.arrays, strict=True))

    @property
    def statics(self) -> dict[str, Any]:
        """The keyword arguments by name."""
        return dict(self._call.statics)

    @property
    def sizes(self) -> dict[str, int]:
        """The core dimensions by letter, as {"l": 5, "n": 3}."""
        return self._call.sizes()

    @property
    def cotangents(self) -> Arrays:
        """One for each output: random, one-hot or one number, as the judge draws them."""
        call = self._call
        made, _ = cotangents_of(call.case, call.arrays, call.statics, ())
        return call.shown_outputs(made)

    def changed(self, **given: Any) -> DrawnCase:
        """The case with other arguments, or other keyword arguments, by name.

        Raises ValueError for an unknown name or a shape that does not fit, and TypeError for
        numbers that are not of the case's type.
        """
        call, statics = self._call, self.statics
        known = [*call.op.inputs, *statics]
        if strange := [name for name in given if name not in known]:
            raise ValueError(f"changed: {unknown(f'argument of {call.op}', strange[0], known)}")
        arrays = list(call.arrays)
        statics |= {name: given[name] for name in statics if name in given}
        try:
            for i, name in enumerate(call.op.inputs):
                if name in given:
                    arrays[i] = call.argument(i, given[name])
            return DrawnCase(call.changed(tuple(arrays), statics))
        except (TypeError, ValueError) as error:
            raise type(error)(f"changed: {error}") from None

    def steps(self, start: int | None, stop: int | None) -> DrawnCase:
        """The case of the time steps from `start` to before `stop`, counted as in a slice.

        Arguments without time stay whole, also an initial state: `changed` gives the second part
        of a split the state after the first one. Raises ValueError for an operator without a time
        axis l, and for a `start` above 0 where a keyword or offsets say how long sequences are.
        """
        call, op = self._call, self._call.op
        if op.leading != "l":
            raise ValueError(f"steps: {op} has no time axis l ({op.signature})")
        first, last, _ = slice(start, stop).indices(self.sizes["l"])
        counting = [name for name in ("l",) if name in op.static] + sorted(op.offsets)
        if first and counting:
            why = f"`{counting[0]}` of {op} counts from the first step"
            raise ValueError(f"steps: wanted a start of 0, got {first}: {why}")
        window = slice(first, max(first, last))
        arrays = tuple(np.array(a) for a in cut(op, call.arrays, window))
        statics = at_length(op, call.statics, window.stop - window.start)
        return DrawnCase(call.changed(arrays, statics))

    def __repr__(self):
        call = self._call
        told = call_in_words(call.case, call.arrays, call.statics, ())
        return f"<{self.operator} {self.dtype} {told}>"

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        """Print it in a falsifying example: Hypothesis would print how it was made."""
        del cycle
        printer.text(repr(self))
