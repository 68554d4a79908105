"""What a run was asked for, and one target of it: the data that every step of the judge reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from refssm.conformance.calling.worker import InProcess, Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.running.source import Learned, Source, judged_here

FOLDER = Path(".refssm")
OF_REPORTS = (
    *("limits", "as_", "overrides", "shrink", "stop_at_failure"),
    *("folder", "diagnose", "evidence"),
)


@dataclass(frozen=True)
class Settings:
    """What a run was asked for: options of the command line, or of whoever calls the judge."""

    profile: str = "default"
    seed: int = 0
    cases: int = 0  # of each check that draws any; 0: as many as the profile has
    types: tuple[str, ...] = ()  # to judge in; empty: those of the profile
    only_checks: tuple[str, ...] = ()  # empty: all
    where: Where = field(default_factory=Where)
    limits: tuple[str, ...] = ()  # `where`, as it was typed
    older: str = ""  # the target of an older implementation, or ""
    as_: str = ""  # the operator that the function implements, where its name does not say it
    overrides: Mapping = field(default_factory=dict)  # options in place of what authors declared
    shrink: bool | None = None  # None: as the profile says
    stop_at_failure: bool = False
    folder: Path | None = FOLDER  # for the inputs of failures; None: keep none
    diagnose: bool = False  # say what a failure looks like
    evidence: bool = False  # keep with failures what pictures are made of

    @property
    def of_verdicts(self) -> Settings:
        """The same without what decides no verdict of a case: what is reported, shrunk and kept.

        How functions are called, by `as_` and `overrides`, is what their worker knows.
        """
        usual = Settings(folder=None)
        return replace(self, **{name: getattr(usual, name) for name in OF_REPORTS})


@dataclass
class Session:
    """One target on trial: who is called, by which settings, and who is told of the progress."""

    worker: Worker | InProcess
    target: str
    settings: Settings = field(default_factory=Settings)
    against: Worker | InProcess | None = None  # an older implementation of the same
    tick: Callable[[str, int, int], None] = lambda check, done, count: None
    spread: Callable[[Session], AbstractContextManager[Source]] = judged_here
    source: Source = field(default_factory=Source)  # of pieces that other processes judge
    learned: dict[str, Learned] = field(default_factory=dict)  # by operator, from them

    @property
    def call(self) -> dict:
        """How the target is called, in terms of JSON, for whoever replays a failure."""
        asked = self.settings
        kept = {"target": self.target, "as": asked.as_, "told": dict(asked.overrides)}
        kept |= {"where": list(asked.limits), "against": asked.older}
        return {**kept, "seed": asked.seed, "profile": asked.profile}
