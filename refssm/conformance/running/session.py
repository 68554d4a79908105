"""A run of the judge over one target: every implementation found in it, check by check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from refssm.conformance.calling.worker import InProcess, Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.judging.result import Result
from refssm.conformance.running.trial import Trial
from refssm.conformance.spreading.pieces import Learned, Source, here_alone
from refssm.conformance.usage_error import UsageError

FOLDER = Path(".refssm")


@dataclass
class Session:
    """What is judged and how; `run` yields results as they come."""

    worker: Worker | InProcess
    target: str
    profile: str = "default"
    seed: int = 0
    types: tuple[str, ...] = ()
    only_checks: tuple[str, ...] = ()
    shrink: bool | None = None
    stop_at_failure: bool = False
    folder: Path | None = FOLDER
    diagnose: bool = False  # whether to say what a failure looks like
    where: Where = field(default_factory=Where)
    against: Worker | InProcess | None = None  # an older implementation of the same
    older: str = ""  # what the report calls it
    told: Mapping = field(default_factory=dict)  # in place of what authors declared
    as_: str = ""  # the operator that the function is
    limits: tuple[str, ...] = ()  # `where`, as it was typed
    evidence: bool = False  # whether failures keep what pictures are made of
    tick: Callable[[str, int, int], None] = lambda check, done, count: None
    cases: int = 0  # of each check that draws any; 0: those of the profile
    spread: Callable[[Session], AbstractContextManager[Source]] = here_alone
    source: Source = field(default_factory=Source)  # of pieces that are judged elsewhere
    learned: dict[str, Learned] = field(default_factory=dict)  # what other processes found out

    @property
    def call(self) -> dict:
        """How the target is called, for whoever replays a failure."""
        kept = {"target": self.target, "as": self.as_, "told": dict(self.told)}
        kept |= {"where": list(self.limits), "against": self.older}
        return {**kept, "seed": self.seed, "profile": self.profile}

    def trials(self) -> list[Trial]:
        """One for each implementation that is judged; some operator has a type asked for."""
        trials = [Trial(self, offer) for offer in self.worker.found if offer.judged]
        if trials and all(trial.foreign for trial in trials):
            raise UsageError(f"{trials[0].op} is {trials[0].foreign}")
        return trials

    def run(self) -> Iterator[Result]:
        """Judge every implementation found in the target."""
        with self.spread(self) as self.source:
            for trial in self.trials():
                for result in trial.run():
                    yield result
                    if result.failed and self.stop_at_failure:
                        return
