"""What a check draws: usual and structured cases, then presets, then long presets.

They are drawn in pieces of ten or fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

UNMUTATED = 10  # after ten examples, half of Hypothesis' next ones are near copies
PRESETS = 4  # one case in four is a preset
LONG = 2  # of these, at most two in a run are long
STRUCTURED = 6  # one usual case in six is structured, where so many are drawn


@dataclass(frozen=True)
class Drawing:
    """The strategies of a check's cases; None for a kind of case that it does not have."""

    usual: Any
    presets: Any = None
    long: tuple = ()  # for each length its own
    structured: Any = None  # beside usual cases

    def pieces(self, count: int) -> Iterator[tuple[int, int, Any]]:
        """First index, number of cases and strategy of each piece of `count` cases in all.

        Hypothesis runs once a piece; other processes judge whole pieces.
        """
        start = 0
        for number, strategy in self._kinds(count):
            for done in range(0, number, UNMUTATED):
                size = min(UNMUTATED, number - done)
                yield start, size, strategy
                start += size

    def _kinds(self, count: int) -> list[tuple[int, Any]]:
        """How many cases of each strategy."""
        of_presets = -(-count // PRESETS) if self.presets is not None and count >= PRESETS else 0
        of_presets = of_presets if self.usual is not None else count
        long = min(LONG, of_presets // 2, len(self.long))
        usual = count - of_presets
        some = self.structured is not None and usual >= STRUCTURED
        of_structure = -(-usual // STRUCTURED) if some else 0
        kinds = [(usual - of_structure, self.usual), (of_structure, self.structured)]
        kinds += [(of_presets - long, self.presets)]
        return [*kinds, *((1, strategy) for strategy in self.long[len(self.long) - long :])]
