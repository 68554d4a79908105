"""Judge every honest implementation with many seeds: the judge must never reject one.

    PYTHONPATH=tests python -m selftest.soak --seeds 1000 --cases 5
    PYTHONPATH=tests python -m selftest.soak --first 200 --seeds 400  # adds to the rows that stand

Each seed runs one check of each operator; the next seed runs the next check, cyclically. Each
finished piece is a line in `.refssm/soak-<sources>.jsonl`, so an interrupted run can continue, and
results of other sources are not reused. `docs/soak.csv` is written from all pieces, and the page
`docs/soak.md` from it.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from honest import Honest, implementations
from rich.progress import track

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.fingerprint import ROOT, digest
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import Declined, InProcess
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import PROFILES, Check, checks_of, default_types
from refssm.conformance.checks.drawing import Draws
from refssm.conformance.checks.law import Law
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.verdict import Verdict
from selftest import stored
from selftest.stored import Soaked, store, today

SOURCES = ROOT
LAW_CASES = 4
LARGE = 5  # one seed of a check in so many, the first too, has a long or wide case beside


def pieces(seeds: int, cases: int, first: int = 0) -> list[tuple[str, str, int, int]]:
    """(operator, check id, seed, cases) of every piece, from seed `first` to `seeds` − 1; laws have
    fewer cases per seed.
    """
    checks = {name: _checks(name) for name in dict.fromkeys(h.op for h in implementations())}
    return [
        (name, check.id, seed, min(LAW_CASES, cases) if isinstance(check.rule, Law) else cases)
        for seed in range(first, seeds)  # outermost, so that an interrupted run has complete seeds
        for name, all_ in checks.items()
        for check in [all_[seed % len(all_)]]
    ]


def _checks(name: str) -> list[Check]:
    """Value in every type, gradients, and the laws; conduct has only one fixed case."""
    op = operator_named(name)
    profile = PROFILES["default"]
    checks = checks_of(op, profile, default_types(op, profile), vjp=op.differentiable)
    return [c for c in checks if c.strategy is not None]


def run_piece(name: str, check_id: str, seed: int, count: int) -> dict:
    """Judge all honest implementations of one operator on the cases of one seed."""
    check = next(c for c in _checks(name) if c.id == check_id)
    cases = drawn(check, count, seed // len(_checks(name)), seed + 2**20)  # not ordinary seeds
    seen = judged(check, here(name), cases)
    key = {"operator": name, "check": check_id, "seed": seed, "cases": count}
    return {**key, "worst": seen.worst, "rejected": seen.rejected}


class Seen(NamedTuple):
    """The result of one check of several implementations on the same cases."""

    worst: dict[str, float]  # the largest ratio
    rejected: list[str]
    passed: set[str]  # implementations with at least one judged case


def here(name: str) -> list[Honest]:
    """The honest implementations of one operator whose libraries are installed."""
    return [h for h in implementations() if h.op == name and not h.absent]


def drawn(check: Check, count: int, turn: int, seed: int) -> Iterator[Case]:
    """Cases without the simplest, with which ordinary runs begin; then a long or wide one at times.

    Turn 0 of a check draws the simplest: with one case for each seed all would be simple.
    """
    drawing, seed = check.cases(), seed_of(check, seed)
    for piece in drawing.pieces(count, turn=1):
        yield from (sample.case for sample in piece.samples(seed))
    beside = [*drawing.long, *drawing.published]
    if beside and turn % LARGE == 0:
        sampler = beside[turn // LARGE % len(beside)]
        yield from (sample.case for sample in Draws(0, sampler, range(1), 1, 1).samples(seed))


def usual(check: Check, count: int, seed: int) -> Iterator[Case]:
    """Cases as an ordinary run has them, the simplest first."""
    return check.cases().cases(count, seed_of(check, seed))


def seed_of(check: Check, seed: int) -> int:
    """Each check has its own cases."""
    return zlib.crc32(check.id.encode()) ^ seed


def judged(check: Check, implementations_: list[Honest], cases: Iterable[Case]) -> Seen:
    """One check of all implementations that can run it; cases and gauges are computed once."""
    honest = [h for h in implementations_ if _can_run(check, h)]
    seen = Seen({h.name: 0.0 for h in honest}, [], set())

    def judge_case(case: Case) -> None:
        for h in honest:
            verdict = _verdict(check, h, case)
            ratio = verdict.ratio if np.isfinite(verdict.ratio) else 0.0
            seen.worst[h.name] = max(seen.worst[h.name], ratio)
            if not verdict.ok:
                seen.rejected.append(f"{h.name}: {case}: {verdict.message}")
            elif verdict.grade != "-":
                seen.passed.add(h.name)

    with remembering():
        for case in cases:
            judge_case(case)
    return seen


@cache
def _twins(name: str) -> list[Found]:
    """The implementations of this name, for several operators: a law may call two of them."""
    return [h.found() for h in implementations() if h.name == name]


@cache
def _worker(name: str) -> InProcess:
    """A cached worker that calls them: reading signatures for each case is slow."""
    return InProcess(_twins(name))


def _can_run(check: Check, honest: Honest) -> bool:
    """True if the implementation has what the check needs: a VJP, or the law's other operator."""
    if check.rule.of_gradient:
        return honest.vjp is not None
    return not check.rule.missing(check.op, [found.op.name for found in _twins(honest.name)])


def _verdict(check: Check, honest: Honest, case: Case) -> Verdict:
    """The verdict on one implementation for one case."""
    worker = _worker(honest.name)
    offer = next(offer for offer in worker.found if offer.name == check.op.name)
    candidate = Candidate(check.op, worker, offer).judged_in(check.dtype)
    try:
        return check.judge_case(candidate, case)
    except (Broken, Declined) as unjudged:
        return unjudged.verdict if isinstance(unjudged, Broken) else Verdict("-")


def record() -> Path:
    """The file of finished pieces; its name has a hash of the sources that can change a verdict."""
    return Path(f".refssm/soak-{digest(SOURCES)}.jsonl")


def finished() -> dict[tuple, dict]:
    """The recorded pieces; a line cut off by an interruption is skipped."""
    pieces_ = stored.lines(record())
    return {(p["operator"], p["check"], p["seed"], p["cases"]): p for p in pieces_}


def among(name: str, only: str) -> bool:
    """True if the operator or its family is in `only`, or `only` is empty."""
    return not only or not {name, operator_named(name).family}.isdisjoint(only.split(","))


def rows(done: list[dict]) -> list[Soaked]:
    """Cases of each implementation, its worst ratio and where, and how often it was rejected."""
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    rejected: dict[tuple[str, str], int] = defaultdict(int)
    cases: dict[tuple[str, str], int] = defaultdict(int)
    seeds: dict[tuple[str, str], int] = defaultdict(int)
    for piece in done:
        for name, ratio in piece["worst"].items():
            key, check = (piece["operator"], name), piece["check"].partition("/")[2]
            worst[key] = max(worst.get(key, (0.0, "")), (ratio, check))
            cases[key] += piece["cases"]
            seeds[key] += 1
        for text in piece["rejected"]:
            rejected[piece["operator"], text.partition(":")[0]] += 1
    date, commit = today()
    return [
        Soaked(
            *key,
            seeds=str(seeds[key]),
            cases=str(cases[key]),
            worst_ratio=f"{ratio:.2g}",
            check=check,
            rejected=str(rejected[key]),
            date=date,
            commit=commit,
        )
        for key, (ratio, check) in worst.items()
    ]


def as_they_come(function: Callable, tasks: list[tuple], workers: int) -> Iterator[tuple]:
    """Each task with its result, from processes that keep their compiled code.

    joblib's loky would restart a process that has grown by compiling all mirrors. With one worker
    this process does the work, so that nothing forks beside the threads of an imported framework.
    """
    if workers == 1:
        yield from ((task, function(*task)) for task in tasks)
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            running = {pool.submit(function, *task): task for task in tasks}
            yield from ((running[done], done.result()) for done in as_completed(running))
        finally:
            pool.shutdown(cancel_futures=True)


def main(
    seeds: Annotated[int, typer.Option(help="Seeds for each operator: up to this one.")] = 1000,
    first: Annotated[int, typer.Option(help="The first seed; above 0, rows are added up.")] = 0,
    cases: Annotated[int, typer.Option(help="Cases for each seed.")] = 5,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    only: Annotated[str, typer.Option(help="Families or operators, separated by commas.")] = "",
) -> None:
    """Run the pieces that are not yet recorded and write the table; exit code 1 after a rejection.

    With `only`, the table's rows for other operators stay as they are. With `first` the new seeds
    come to those of the rows that stand: so many short runs make a long one. Take each range
    once: a second run of it is added again.
    """
    kept = record()
    kept.parent.mkdir(exist_ok=True)
    for h in implementations():
        if h.absent:
            typer.echo(f"left out: {h}, since {h.needs} is not installed", err=True)
    done, wanted = finished(), [p for p in pieces(seeds, cases, first) if among(p[0], only)]
    todo = [piece for piece in wanted if piece not in done]
    running = as_they_come(run_piece, todo, workers)
    with kept.open("a", encoding="utf-8") as lines:
        for _, piece in track(running, total=len(todo), disable=not sys.stderr.isatty()):
            lines.write(json.dumps(piece) + "\n")
            lines.flush()
    done = finished()
    mine = [done[piece] for piece in wanted]
    store(rows(mine), (piece[0] for piece in wanted), others=bool(only), further=first > 0)
    rejections = [text for piece in mine for text in piece["rejected"]]
    typer.echo(f"{len(mine)} pieces, {len(rejections)} rejections of honest implementations")
    for text in rejections[:10]:
        typer.echo(f"  {text}")
    raise typer.Exit(1 if rejections else 0)


if __name__ == "__main__":  # worker processes need the module's functions, not __main__'s
    from selftest import soak

    typer.run(soak.main)
