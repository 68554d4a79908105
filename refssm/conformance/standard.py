"""The standard of a result: the judged type, the arithmetic, and the allowed error ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refssm._declaration.implements import Budget
from refssm.conformance.number_types import NumberType, number_type

C = 16  # a wrong formula gives thousands, honest float32 scans stay below 4: docs/judge.md
HALF_PRECISION = 2.0**-11  # u of TF32 and float16


@dataclass(frozen=True)
class Standard:
    """The standard of results; by default their own type and 16·u·K.

    `type` is the judged type, `computes` the arithmetic, `room` the allowed ratio; `ftz` allows
    subnormal numbers to be flushed to zero; `normwise` allows grade N, "right in norm".
    """

    type: NumberType
    computes: NumberType
    room: float = C
    ftz: bool = False
    normwise: bool = True
    state: NumberType | None = None  # in which a recurrence keeps its state, if not in `computes`

    @classmethod
    def of(cls, name, accuracy: Budget | None = None, ftz: bool = False) -> Standard:
        """The standard of a type with its author's declared accuracy."""
        kind, accuracy = number_type(name), accuracy or Budget()
        computes = number_type(accuracy.computes) if accuracy.computes else kind
        state = number_type(accuracy.state) if accuracy.state else None
        return cls(kind, computes, accuracy.C, ftz, accuracy.normwise, state)

    @property
    def u(self) -> float:
        """Unit roundoff of the arithmetic."""
        return self.computes.u

    @property
    def floor(self) -> float:
        """The least error of one rounding, in units of u: the smallest normal number of the
        arithmetic, divided by u with `ftz`.

        The range of the judged type does not matter here: a float16 program that computes in
        float32 has no intermediate result in float16, so none that underflows there.
        """
        return self.computes.tiny / self.u if self.ftz else self.computes.tiny

    @property
    def copied(self) -> float:
        """With `ftz`, the error of a flushed copy of an input or an output, in units of u.

        It is that of one rounding, or what the allowed ratio turns into the smallest normal number
        of the judged type: arguments and results are of that type, and flushed once.
        """
        return max(self.floor, self.type.tiny / (self.u * self.room))

    def u_out(self, dtype) -> float:
        """Unit roundoff of an output array of type `dtype`, maybe wider than the judged type."""
        own = np.finfo(dtype).eps == np.finfo(self.type.carrier).eps
        return self.type.u if own else float(np.finfo(dtype).eps) / 2
