"""What a result is held to: the type judged, the arithmetic it was computed in, the room left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refssm._implements import Budget
from refssm.conformance.number_types import NumberType, number_type

C = 16  # a wrong formula is out by thousands, honest float32 scans stay below 4: docs/judge.md
HALF_PRECISION = 2.0**-11  # u of TF32 and float16


@dataclass(frozen=True)
class Standard:
    """What results are held to; without a declaration, their own type and 16·u·K."""

    type: NumberType
    computes: NumberType
    room: float = C
    ftz: bool = False

    @classmethod
    def of(cls, name, accuracy: Budget | None = None, ftz: bool = False) -> Standard:
        """The standard of a type, as its author's budget has it."""
        kind, accuracy = number_type(name), accuracy or Budget()
        computes = number_type(accuracy.computes) if accuracy.computes else kind
        return cls(kind, computes, accuracy.C, ftz)

    @property
    def u(self) -> float:
        """Of the arithmetic."""
        return self.computes.u

    @property
    def floor(self) -> float:
        """What no rounding is charged less than: the smallest normal number, ÷u if flushed to 0."""
        tiny = max(self.type.tiny, self.computes.tiny)
        return tiny / self.u if self.ftz else tiny

    def u_out(self, dtype) -> float:
        """Of an output held in `dtype`: a wider carrier than the type's own is a wider output."""
        own = np.finfo(dtype).eps == np.finfo(self.type.carrier).eps
        return self.type.u if own else float(np.finfo(dtype).eps) / 2
