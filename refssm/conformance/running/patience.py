"""What ends by the clock: the explanation of a failure, and a run with `--time`.

Numbers of cases and of tries are fixed, so that a seed means one thing on every machine. The clock
only ends what would keep a reader waiting, and the report says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from refssm.conformance.checks.checks import GRADIENT, STATE, VALUE, Check

EXPLAIN = 60.0  # seconds for the failures of one check; most need less than 10
UNLIMITED = float(np.inf)


class OuterStop:
    """True after so many seconds; `acted` says whether that cut something short."""

    def __init__(self, seconds: float = UNLIMITED):
        self.until, self.acted = time.monotonic() + seconds, False

    def __call__(self) -> bool:
        self.acted |= time.monotonic() > self.until
        return self.acted


@dataclass
class Clock:
    """The seconds of a run, divided among the checks that are still to come.

    What a check does not need is left for those after it. `parts` is how many implementations of a
    target are still to come, and `places` how many targets, each with the one that is judged.
    """

    seconds: float = UNLIMITED
    parts: int = 1
    places: int = 1
    begun: int = 0  # checks; the first one is judged however little time there is
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that are left, or less than 0."""
        return self.started + self.seconds - time.monotonic()

    @property
    def of_explanation(self) -> float:
        """Seconds for the failures of one check: other checks keep half of what is left."""
        return max(self.left / 2, 0.0)

    @property
    def limited(self) -> bool:
        """True if the run has a limit."""
        return self.seconds < UNLIMITED

    def share(self, to_come: Sequence[Check]) -> float:
        """The seconds of the first of these checks of one implementation, which now begins."""
        self.begun += 1
        if not self.limited:
            return UNLIMITED
        weights = [_weight(check) for check in to_come]
        return self.left * weights[0] / (sum(weights) * (self.parts + self.places - 1))

    @property
    def over(self) -> str:
        """Why the check is not begun, or ""."""
        if not self.limited or self.left > 0 or self.begun <= 1:
            return ""
        return f"not begun: the {self.seconds:g} s of --time were over"


def _weight(check: Check) -> float:
    """Values and gradients draw more cases, and say more, than a law; conduct is one call."""
    if check.rule in (VALUE, STATE, GRADIENT):
        return 4.0
    return 1.0 if check.strategy is not None else 0.25
