"""What a check draws: usual and structured cases, presets, long presets, then published sizes.

They are drawn in pieces of ten or fewer, which other processes may judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from refssm.conformance.cases.case import Case
from refssm.conformance.cases.sampling import Sample, Sampler, samples

PIECE = 10
PRESETS = 5  # one case in five is a preset
LONG = 2  # of these, at most two in a run are long
STRUCTURED = 4  # one usual case in four is structured, where so many are drawn
BESIDE = 2**31  # index of the first case in a published size: no turn of the others gets so far


class Draws(NamedTuple):
    """Consecutive cases of one sampler."""

    start: int  # the index of the first among all cases of a check
    sampler: Sampler
    numbers: range  # among the cases of this sampler
    among: int
    turn: int  # in turn 0 the first cases are the simplest

    def samples(self, seed: int) -> list[Sample]:
        """The cases, the same for the same seed."""
        seeds = seed, self.start - self.numbers[0]
        return samples(self.sampler, self.numbers, self.among, seeds, simplest=self.turn == 0)


@dataclass(frozen=True)
class Drawing:
    """The samplers of a check's cases; None for a kind of case that it does not have."""

    usual: Sampler | None
    presets: Sampler | None = None
    long: tuple[Sampler, ...] = ()  # for each length its own
    structured: Sampler | None = None  # beside usual cases
    published: tuple[Sampler, ...] = ()  # a case each, more than are asked for

    def all_pieces(self, count: int) -> Iterator[Draws]:
        """The pieces of `count` cases, then those in published sizes, which nothing replaces."""
        yield from self.pieces(count)
        for i, sampler in enumerate(self.published):
            yield Draws(BESIDE + i, sampler, range(1), 1, 1)

    def pieces(self, count: int, turn: int = 0) -> Iterator[Draws]:
        """The pieces of `count` cases in all; later turns draw other cases in their place."""
        start = turn * count
        for number, sampler in self._kinds(count):
            if sampler is None:
                continue
            for done in range(0, number, PIECE):
                numbers = range(done, min(done + PIECE, number))
                yield Draws(start, sampler, numbers, number, turn)
                start += len(numbers)

    def cases(self, count: int, seed: int) -> Iterator[Case]:
        """So many cases, none in a published size."""
        for piece in self.pieces(count):
            yield from (sample.case for sample in piece.samples(seed))

    def all_cases(self, count: int, seed: int) -> Iterator[Case]:
        """These, and the cases in published sizes."""
        for piece in self.all_pieces(count):
            yield from (sample.case for sample in piece.samples(seed))

    def _kinds(self, count: int) -> list[tuple[int, Sampler | None]]:
        """How many cases of each sampler."""
        of_presets = -(-count // PRESETS) if self.presets is not None and count >= PRESETS else 0
        of_presets = of_presets if self.usual is not None else count
        long = min(LONG, of_presets // 2, len(self.long))
        usual = count - of_presets
        some = self.structured is not None and usual >= STRUCTURED
        of_structure = -(-usual // STRUCTURED) if some else 0
        kinds = [(usual - of_structure, self.usual), (of_structure, self.structured)]
        kinds += [(of_presets - long, self.presets)]
        return [*kinds, *((1, sampler) for sampler in self.long[len(self.long) - long :])]
