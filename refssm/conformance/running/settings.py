"""The settings of a run, and the session on one target: the data for every step of the judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.calling.worker import Worker
from refssm.conformance.cases.ranges import Where
from refssm.conformance.checks.checks import PROFILES
from refssm.conformance.running import patience
from refssm.conformance.running.patience import Clock
from refssm.conformance.running.source import Learned, Source, judged_here

FOLDER = Path(".refssm")
OF_REPORTS = (
    *("limits", "function", "as_", "overrides", "stop_at_failure", "allow_thin"),
    *("folder", "hints", "diagnose", "evidence", "explain"),
)


@dataclass(frozen=True)
class Settings:
    """The settings of a run: options of the command line, or arguments of a program."""

    profile: str = "default"
    seed: int = 0
    cases: int = 0  # cases per check; 0: as many as the profile has
    preset: str = ""  # only cases of this preset; "": of all kinds
    types: tuple[str, ...] = ()  # types to judge in; empty: those of the profile
    only_checks: tuple[str, ...] = ()  # empty: all
    where: Where = field(default_factory=Where)
    limits: tuple[str, ...] = ()  # the texts of `where`
    older: str = ""  # the target of an older implementation, or ""
    function: str = ""  # the function's name if its file has several of one operator
    as_: str = ""  # the operator of a function with another name
    overrides: Mapping = field(default_factory=dict)  # options that override declarations
    # None: as in the profile; without it, the first failure ends a check
    shrink: bool | None = None
    allow_thin: bool = False  # checks that could judge few cases do not fail the run
    stop_at_failure: bool = False
    folder: Path | None = FOLDER  # folder for inputs of failures; None: do not save
    hints: bool = True  # judge failures in other ways, too: in a wider type, without subnormals
    diagnose: bool = False  # look for the likely cause of failures
    evidence: bool = False  # store data for pictures with failures
    explain: float = field(default_factory=lambda: patience.EXPLAIN)  # seconds of a check

    @property
    def shrinks(self) -> bool:
        """True if failures are made smaller and the search goes on after the first one."""
        return PROFILES[self.profile].shrink if self.shrink is None else self.shrink

    @property
    def of_verdicts(self) -> Settings:
        """The same settings, with defaults for all that cannot change the verdict on a case.

        Those are the settings of reports and saving. `as_` and `overrides` are among
        them because the worker already has them.
        """
        usual = Settings(folder=None)
        return replace(self, **{name: getattr(usual, name) for name in OF_REPORTS})


@dataclass
class Session:
    """One run on a target: its worker, its settings, and a callback for progress."""

    worker: Worker | InProcess
    target: str
    settings: Settings = field(default_factory=Settings)
    against: Worker | InProcess | None = None  # the worker of an older implementation
    tick: Callable[[str, int, int], None] = lambda check, done, count: None
    spread: Callable[[Session], AbstractContextManager[Source]] = judged_here
    source: Source = field(default_factory=Source)  # provides pieces judged by other processes
    clock: Clock = field(default_factory=Clock)  # of the whole run, of all its sessions
    learned: dict[str, Learned] = field(default_factory=dict)  # by operator, from other processes

    def begin_another(self) -> None:
        """Let another implementation begin with children that run."""
        for worker in self.children:
            worker.begin_another()

    @property
    def children(self) -> list[Worker]:
        """The child processes of the implementation, and of the old one if there is one."""
        return [w for w in (self.worker, self.against) if isinstance(w, Worker)]

    @property
    def call(self) -> dict:
        """How the target is called, as JSON data, for replaying a failure."""
        asked = self.settings
        kept = {"target": self.target, "as": asked.as_, "told": dict(asked.overrides)}
        kept |= {"where": list(asked.limits), "against": asked.older}
        return {**kept, "seed": asked.seed, "profile": asked.profile}
