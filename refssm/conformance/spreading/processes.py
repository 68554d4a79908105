"""`--workers` and `--dask`: several processes judge pieces of checks; this one combines them.

Each process has its own child with the implementation, and nothing else is shared, so the verdicts
are those of one process.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor

from refssm.conformance.calling.fingerprint import versions_here
from refssm.conformance.calling.processes.parent import end_with
from refssm.conformance.calling.worker import Worker
from refssm.conformance.checks.checks import Check
from refssm.conformance.judging.kept import keeping
from refssm.conformance.running.session import trials_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.running.source import Learned, Source
from refssm.conformance.running.trial import Trial
from refssm.conformance.spreading.cluster import connected
from refssm.conformance.spreading.journal import Journal, Kept
from refssm.conformance.spreading.losses import Losses
from refssm.conformance.spreading.pieces import Pieces, drawn_by, learn, piece_of
from refssm.conformance.usage_error import UsageError


@dataclass(frozen=True)
class Kit:
    """What another process needs in order to judge in the same way."""

    # target, name, time limit and declarations: of the new implementation, then of the old one
    loaded: tuple[tuple, ...]
    settings: Settings
    folder: str
    versions: dict[str, str]
    own: tuple[str, ...]  # hashes of the author's files

    @classmethod
    def of(cls, session: Session) -> Kit:
        """The kit of a session."""
        workers = session.children
        return cls(
            tuple((w.target, w.name, w.timeout, w.told) for w in workers),
            session.settings.of_verdicts,
            os.getcwd(),
            versions_here(),
            tuple(w.sources().own for w in workers),
        )


class Bench:
    """An implementation in a child of this process, ready to be judged piece by piece."""

    def __init__(self, kit: Kit):
        self.kit, self.workers, self.checks = kit, [], {}
        _refuse_other_versions(kit.versions)
        folder = kit.folder if os.path.isdir(kit.folder) else None
        try:
            for loaded, own in zip(kit.loaded, kit.own, strict=True):
                self.workers.append(Worker(*loaded, folder=folder))
                if self.workers[-1].sources().own != own:
                    raise UsageError(f"{loaded[0]}: its code differs from that where the run began")
        except UsageError as error:
            self.close()
            raise UsageError(f"a process on {socket.gethostname()}: {error}") from None
        worker, against = [*self.workers, None][:2]
        assert worker is not None
        self.session = Session(worker, worker.target, kit.settings, against)
        self.losses = Losses(self.session)

    def trial(self, name: str, learned: Learned | None = None) -> Trial:
        """The trial of one operator's implementation."""
        self.session.learned = {name: learned} if learned else {}
        return next(trial for trial in trials_of(self.session) if trial.op.name == name)

    def check(self, name: str, learned: Learned, check_id: str) -> tuple[Trial, Check]:
        """One of its checks, with the trial."""
        if name not in self.checks:
            trial = self.trial(name, learned)
            self.checks[name] = trial, {c.id: c for c in trial.checks(trial.probe.accepted)}
        trial, checks = self.checks[name]
        return trial, checks[check_id]

    def close(self) -> None:
        """End the child processes."""
        for worker in self.workers:
            worker.close()


def _refuse_other_versions(at_start: dict[str, str]) -> None:
    """UsageError if versions here differ from those where the run began."""
    for name, version in versions_here().items():
        if version != at_start.get(name):
            raise UsageError(
                f"a process on {socket.gethostname()} has {name} {version}, "
                f"but the run began with {at_start.get(name)}: the verdicts might differ"
            )


_at_work = threading.Lock()  # one piece at a time, because mpmath's precision is global
_benches: list[Bench] = []  # at most one: the last


def _bench(kit: Kit) -> Bench:
    """The bench of a kit; a new one if a child process died since the last piece."""
    if not (_benches and _benches[0].kit == kit and _benches[0].losses.intact):
        clear()
        _benches.append(Bench(kit))
    return _benches[0]


def clear() -> None:
    """End the child processes of this process, even during a call."""
    while _benches:
        _benches.pop().close()


def prepare(kit: Kit, name: str) -> tuple[str, Learned | None]:
    """Probe one implementation before its checks."""
    with _at_work, keeping():
        return name, learn(_bench(kit).trial(name))


def judge_piece(kit: Kit, learned: Learned, name: str, check_id: str, part: int):
    """Judge one piece; returns its key and the piece."""
    with _at_work, keeping():
        return check_id, part, piece_of(*_bench(kit).check(name, learned, check_id), part)


class Crew:
    """The processes that judge."""

    def __init__(self, backend: str, jobs: int, **options):
        self.backend, self.jobs, self.options = backend, jobs, options
        self.starting: Any = ()

    def start(self) -> None:
        """Start processes of this machine: they import while this one loads the implementation."""
        count = self.jobs if self.jobs > 0 else os.cpu_count() or 1
        self.starting = self._run(_ready, [()] * count)

    def each(self, function: Callable, tasks: Iterable[tuple]) -> Generator[Any, None, None]:
        """The result of `function` for each task, in order of completion."""
        results = self.starting
        try:
            for _ in results:
                pass
            self.starting = ()
            results = self._run(function, tasks)
            for result in results:  # noqa: UP028 (which would close them before `finally` does)
                yield result
        except BrokenExecutor:
            raise UsageError(
                "--workers: a process was killed, perhaps because memory was full; "
                "use fewer processes; --resume continues the run"
            ) from None
        finally:
            _close(results)

    def close(self) -> None:
        """Forget processes that were started and got no task."""
        _close(self.starting)

    def _run(self, function: Callable, tasks: Iterable[tuple]) -> Any:
        with parallel_config(self.backend, n_jobs=self.jobs, **self.options):
            how: Any = {"return_as": "generator_unordered", "batch_size": 1, "max_nbytes": None}
            run = Parallel(**how)
        return run(delayed(function)(*task) for task in tasks)


def _ready() -> None:
    """To be called, it must be imported, with all of the judge."""


def _close(results: Any) -> None:
    with warnings.catch_warnings():  # tasks after a failure are cancelled
        warnings.filterwarnings("ignore", ".*tasks? .* been", UserWarning)
        if results:
            results.close()


@contextmanager
def local(workers: int) -> Iterator[Crew]:
    """Processes of this machine, each with one thread for linear algebra."""
    with (
        warnings.catch_warnings()
    ):  # loky restarts processes that have grown: no verdict depends on it
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        try:
            follow = partial(_follow, os.getpid())
            crew = Crew("loky", workers, inner_max_num_threads=1, initializer=follow)
            with closing(crew):
                yield crew
        finally:
            get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _follow(first: int) -> None:
    """Ignore Ctrl-C, which the first process handles, and end with that process."""
    # Windows: a virtual environment's interpreter is a child of its launcher
    end_with(first if os.name == "posix" else os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def remote(address: str) -> Iterator[Crew]:
    """The workers of a Dask cluster."""
    with connected(address) as client:
        try:
            yield Crew("dask", -1, client=client)
        finally:
            client.run(clear)


class Spread(ExitStack):
    """How sessions are judged: by other processes, with a record, both or neither."""

    def __init__(self, workers: int = 1, address: str | None = None, folder: Path | None = None):
        super().__init__()
        self.workers, self.address = workers, address
        self.crew: Crew | None = None
        self.kept = Kept(folder) if folder else None

    def __enter__(self) -> Spread:
        if self.address is not None:
            self.crew = self.enter_context(remote(self.address))
        elif self.workers != 1:
            self.crew = self.enter_context(local(self.workers))
            self.crew.start()
        return super().__enter__()

    @property
    def lost(self) -> list[str]:
        """Why records end before the run does."""
        return [journal.lost for journal in self.kept.journals if journal.lost] if self.kept else []

    def discard(self) -> None:
        """Delete the records: the whole command is done."""
        if self.kept:
            self.kept.discard()

    @contextmanager
    def __call__(self, session: Session) -> Iterator[Source]:
        """The source of pieces for the session."""
        with ExitStack() as stack:
            journal = stack.enter_context(closing(self.kept.open(session))) if self.kept else None
            if self.crew is not None:
                yield stack.enter_context(_spread(session, self.crew, journal))
            else:
                yield Pieces(session, journal) if journal else Source()


@contextmanager
def _spread(session: Session, crew: Crew, journal: Journal | None) -> Iterator[Source]:
    """Probe every implementation, then judge every piece that is not in the record."""
    kit = Kit.of(session)
    names = [t.op.name for t in trials_of(session) if not (t.offer.absent or t.scope.undeclared)]
    with closing(crew.each(prepare, [(kit, name) for name in names])) as learned:
        session.learned = {name: told for name, told in learned if told}
    pieces = Pieces(session, journal)
    plan = [task for trial in trials_of(session) for task in _plan(kit, trial, pieces)]
    wanted = (t for t in plan if t[2] not in pieces.over and pieces.lacks(*t[3:]))
    pieces.planned = {task[3:] for task in plan}
    with closing(crew.each(judge_piece, wanted)) as pieces.arriving:
        yield pieces


def _plan(kit: Kit, trial: Trial, pieces: Pieces) -> Iterator[tuple]:
    """The pieces of an implementation that other processes must judge."""
    learned = trial.probe.learned
    if not learned or learned.doubt or learned.misfit:
        return
    if trial.offer.seems and all(learned.refused.values()):
        return
    done = pieces.journal.pieces if pieces.journal else {}
    for check in trial.checks(trial.probe.accepted):
        if trial.left_out(check):
            continue
        for part, *_ in drawn_by(trial, check).pieces(check.count):
            if (check.id, part) not in done:
                yield kit, learned, trial.op.name, check.id, part
