"""Drawing from lists: recorded choices, from which the same case can be made again.

A sampler is a function that makes choices and returns a case. The first entry of each list is the
simplest one, so lower choices give simpler cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from refssm.conformance.cases.case import Case

LEADING = 3  # simple values of many steps are exact integers more often than others
ATTEMPTS = 10  # to draw a case that was not drawn before

T = TypeVar("T")
P = ParamSpec("P")
Pick = Callable[[int, int], int]  # of choice number `place`, a number from 0 to `end` − 1


def simplest(place: int, end: int) -> int:
    """The first entry of each list."""
    del place, end
    return 0


class Choices:
    """Makes choices and records them: the given ones, then those that `pick` returns."""

    def __init__(self, pick: Pick = simplest, given: Sequence[int] = ()):
        self.pick, self.given = pick, given
        self.made: list[int] = []

    def below(self, end: int) -> int:
        """A number from 0 to `end` − 1."""
        place = len(self.made)
        if place < len(self.given):  # after other choices the list may be shorter
            chosen = min(self.given[place], end - 1)
        else:
            chosen = self.pick(place, end)
        self.made.append(chosen)
        return chosen

    def one_of(self, entries: Sequence[T]) -> T:
        """An entry of a list."""
        return entries[self.below(len(entries))]


def at_random(rng: np.random.Generator) -> Pick:
    """Each entry is as likely as any other."""
    return lambda place, end: int(rng.integers(end))


def evenly(index: int, cases: int, seed: tuple[int, ...], simplest: bool) -> Pick:
    """Random choices for one of so many cases that together go through each list evenly.

    For each choice the interval [0, 1) has as many parts as there are cases, one for each case, so
    of three entries each is chosen in a third of the cases. With `simplest` the first case has the
    first entry of each list, and the second one of each list but the `LEADING` ones: sizes.
    """
    return lambda place, end: min(int(_points(cases, seed, simplest, place)[index] * end), end - 1)


@lru_cache(1000)
def _points(cases: int, seed: tuple[int, ...], simplest: bool, place: int) -> np.ndarray:
    """For one choice the points of all cases."""
    order, within = np.random.default_rng([*seed, place]).random((2, cases))
    alike = simplest * (1 if place < LEADING else 2)  # so many cases have the first entry
    order[:alike] = -1.0
    points = (np.argsort(np.argsort(order, kind="stable")) + within) / cases
    points[:alike] = 0.0
    return points


Sampler = Callable[[Choices], Case]


def sampler(function: Callable[Concatenate[Choices, P], Case]) -> Callable[P, Sampler]:
    """Change a function of choices and settings: called with the settings, it gives a sampler."""

    @wraps(function)
    def of_settings(*args: P.args, **how: P.kwargs) -> Sampler:
        return lambda choose: function(choose, *args, **how)

    return of_settings


@dataclass(frozen=True, eq=False)
class Sample:
    """A case and the choices that gave it; a case that no sampler drew has no choices."""

    case: Case
    choices: tuple[int, ...] = ()
    sampler: Sampler | None = None

    def changed(self, choices: Sequence[int]) -> Sample:
        """The sample of other choices."""
        assert self.sampler is not None
        return made(self.sampler, Choices(given=choices))


def made(sampler: Sampler, choices: Choices) -> Sample:
    """The sample of these choices, as they are recorded."""
    case = sampler(choices)
    return Sample(case, tuple(choices.made), sampler)


def samples(
    sampler: Sampler, numbers: range, among: int, seed: tuple[int, ...], simplest: bool
) -> list[Sample]:
    """Of `among` cases those with these numbers; random choices replace a repetition."""
    found: dict[str, Sample] = {}
    for i in numbers:
        pick, rng = evenly(i, among, (*seed, 0), simplest), np.random.default_rng([*seed, 1, i])
        for attempt in range(ATTEMPTS):
            sample = made(sampler, Choices(at_random(rng) if attempt else pick))
            if str(sample.case) not in found:
                found[str(sample.case)] = sample
                break
    return [*found.values()]
