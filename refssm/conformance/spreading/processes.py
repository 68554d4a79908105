"""`--workers` and `--dask`: several processes judge pieces of checks; this one combines them.

Each process has its own child with the implementation, and nothing else is shared, so the verdicts
are those of one process. A Dask cluster is found by its scheduler's address.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.fingerprint import versions_here
from refssm.conformance.calling.worker import Worker
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.piece import Piece
from refssm.conformance.judging.certificate import certified
from refssm.conformance.judging.kept import keeping
from refssm.conformance.running.own_faults import guarded
from refssm.conformance.running.session import Trial, trials_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.running.source import Learned, Source
from refssm.conformance.spreading.crew import Crew
from refssm.conformance.spreading.journal import Journal, KeptRecords
from refssm.conformance.spreading.pieces import Losses, Pieces, drawn_by, learn, piece_of
from refssm.conformance.usage_error import UsageError

SECONDS = 10  # time limit for the scheduler's answer


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster; UsageError if there is no scheduler or no worker."""
    if find_spec("distributed") is None:
        raise UsageError("--dask needs Dask: pip install 'dask[distributed]'")
    from distributed import Client

    try:
        asyncio.run(_reached(address))  # a client that cannot connect hangs when it is deleted
        with warnings.catch_warnings():  # on versions: refssm compares those that matter
            warnings.simplefilter("ignore")
            client = Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, ImportError) as error:
        why = " ".join(str(error).split()) or f"no answer within {SECONDS:g} s"
        told = f"no scheduler answers: {why}"
        raise UsageError(f"--dask {address!r}: {told}") from None
    with client:
        if not client.ncores():
            raise UsageError(f"--dask {address!r}: the cluster has no workers")
        yield client


async def _reached(address: str) -> None:
    """Raise an exception unless a scheduler answers."""
    from distributed import Security, rpc

    secret = Security().get_connection_args("client")
    async with rpc(address, timeout=SECONDS, connection_args=secret) as server:
        told: Any = await asyncio.wait_for(server.identity(), SECONDS)
    if told.get("type") != "Scheduler":
        raise ValueError(f"it is a {told.get('type')}")


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


class ReadyChild:
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
_benches: list[ReadyChild] = []  # at most one: the last


def _bench(kit: Kit) -> ReadyChild:
    """The bench of a kit; a new one if a child process died since the last piece."""
    if not (_benches and _benches[0].kit == kit and _benches[0].losses.intact):
        clear()
        _benches.append(ReadyChild(kit))
    return _benches[0]


def clear() -> None:
    """End the child processes of this process, even during a call."""
    while _benches:
        _benches.pop().close()


CALLS, REFERENCE = "calls", "reference"


def prepare(kit: Kit, name: str, what: str) -> tuple[str, str, Learned | str | None]:
    """Before the checks: the first calls of one implementation, or why not to trust refssm's.

    None if a child process died, or by a fault of refssm: then the first process finds out.
    """

    def found() -> Learned | str | None:
        if what == REFERENCE:
            return certified(operator_named(name))
        return learn(_bench(kit).trial(name))

    with _at_work, keeping():
        return name, what, guarded(found, lambda fault: None)


def judge_piece(kit: Kit, learned: Learned, name: str, check_id: str, part: int):
    """Judge one piece; returns its key and the piece, None if the first process must judge it."""

    def judged() -> Piece | None:
        return piece_of(*_bench(kit).check(name, learned, check_id), part)

    with _at_work, keeping():
        return check_id, part, guarded(judged, lambda fault: None)


@contextmanager
def remote(address: str) -> Iterator[Crew]:
    """The workers of a Dask cluster."""
    with connected(address) as client:
        try:
            yield Crew("dask", -1, client=client)
        finally:
            client.run(clear)


class Spread:
    """How sessions are judged: by other processes, with a record, both or neither."""

    def __init__(self, crew: Crew | None = None, folder: Path | None = None):
        self.crew, self.kept = crew, KeptRecords(folder) if folder else None

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
    session.learned = _learned(kit, crew, names)
    pieces = Pieces(session, journal)
    plan = [task for trial in trials_of(session) for task in _plan(kit, trial, pieces)]
    wanted = (t for t in plan if t[2] not in pieces.over and pieces.lacks(*t[3:]))
    pieces.planned = {task[3:] for task in plan}
    with closing(crew.each(judge_piece, wanted)) as pieces.arriving:
        yield pieces


def _learned(kit: Kit, crew: Crew, names: list[str]) -> dict[str, Learned]:
    """What is known of each implementation before its checks; else the first process finds out."""
    tasks = [(kit, name, what) for name in names for what in (CALLS, REFERENCE)]
    with closing(crew.each(prepare, tasks)) as prepared:
        told = {(name, what): found for name, what, found in prepared}
    learned = {name: told[name, CALLS] for name in names}
    doubts = {name: told[name, REFERENCE] for name in names}
    known = {name: of for name, of in learned.items() if of and doubts[name] is not None}
    return {name: of._replace(doubt=doubts[name]) for name, of in known.items()}


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
        for part, *_ in drawn_by(trial, check).all_pieces(check.count):
            if (check.id, part) not in done:
                yield kit, learned, trial.op.name, check.id, part
