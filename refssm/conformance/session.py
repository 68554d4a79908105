"""A run of the judge over one target: every implementation found in it, check by check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from refssm.conformance.pieces import Learned, Source, here_alone
from refssm.conformance.result import Result
from refssm.conformance.trial import Trial
from refssm.conformance.where import Where
from refssm.conformance.worker import InProcess, Worker

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
    where: Where = field(default_factory=Where)
    against: Worker | InProcess | None = None  # an older implementation of the same
    older: str = ""  # what the report calls it
    options: str = ""  # of the command, to call the same function again
    tick: Callable[[str, int, int], None] = lambda check, done, count: None
    cases: int = 0  # of each check that draws any; 0: those of the profile
    spread: Callable[[Session], AbstractContextManager[Source]] = here_alone
    source: Source = field(default_factory=Source)  # of pieces that are judged elsewhere
    learned: dict[str, Learned] = field(default_factory=dict)  # what other processes found out

    def trials(self) -> list[Trial]:
        """One for each implementation that is judged."""
        return [Trial(self, offer) for offer in self.worker.found if offer.judged]

    def run(self) -> Iterator[Result]:
        """Judge every implementation found in the target."""
        with self.spread(self) as self.source:
            for trial in self.trials():
                for result in trial.run():
                    yield result
                    if result.failed and self.stop_at_failure:
                        return
