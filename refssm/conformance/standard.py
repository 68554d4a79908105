"""The standard of a result: the judged type, the arithmetic, and the allowed error ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refssm._implements import Budget
from refssm.conformance.number_types import NumberType, number_type

C = 16  # a wrong formula gives thousands, honest float32 scans stay below 4: docs/judge.md
HALF_PRECISION = 2.0**-11  # u of TF32 and float16


@dataclass(frozen=True)
class Standard:
    """The standard of results; by default their own type and 16·u·K.

    `type` is the judged type, `computes` the arithmetic, `room` the allowed ratio; `ftz` allows
    subnormal numbers to be flushed to zero.
    """

    type: NumberType
    computes: NumberType
    room: float = C
    ftz: bool = False

    @classmethod
    def of(cls, name, accuracy: Budget | None = None, ftz: bool = False) -> Standard:
        """The standard of a type with its author's declared accuracy."""
        kind, accuracy = number_type(name), accuracy or Budget()
        computes = number_type(accuracy.computes) if accuracy.computes else kind
        return cls(kind, computes, accuracy.C, ftz)

    @property
    def u(self) -> float:
        """Unit roundoff of the arithmetic."""
        return self.computes.u

    @property
    def floor(self) -> float:
        """The least error of one rounding: the smallest normal number, divided by u with `ftz`."""
        tiny = max(self.type.tiny, self.computes.tiny)
        return tiny / self.u if self.ftz else tiny

    def u_out(self, dtype) -> float:
        """Unit roundoff of an output array of type `dtype`, maybe wider than the judged type."""
        own = np.finfo(dtype).eps == np.finfo(self.type.carrier).eps
        return self.type.u if own else float(np.finfo(dtype).eps) / 2
