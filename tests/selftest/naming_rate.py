"""How often the judge names a planted bug that is planted again, in a different program.

    PYTHONPATH=tests python -m selftest.naming_rate --only scan,ssd --every 1
    PYTHONPATH=tests python -m selftest.naming_rate --record  # all; adds a row to the table

Each bug is planted in an honest implementation instead of the reference, which adds in another
order. If the bug is written out in full, so that this changes nothing, it is run with twice the
digits and rounded. The judge runs the check that catches the bug, and its diagnosis is compared
with the bug's description; the rate is of those that are refused. Of a bug that depends on the
call, the sentence that says so is a name.

Each finished operator is a line in `.refssm/naming-<sources>.jsonl`, so an interrupted run goes on.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.progress import track

from refssm._declaration.arguments import each
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import PROFILES, default_types, rule_named
from refssm.conformance.checks.law import Conduct
from refssm.conformance.diagnosis.pattern import CHANGING
from refssm.conformance.diagnosis.suspects import bugs_of_operator
from refssm.conformance.gauges.gauge import wide
from refssm.conformance.judging.expected import remembering
from refssm.conformance.number_types import number_type
from refssm.conformance.planted import PlantedBug
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from selftest import soak, stored

# Arithmetic of few bits gives other roundings in another program: any of these names counts.
PRECISIONS = {
    "float16": "TF32 or float16",
    "tf32": "TF32 or float16",
    "bfloat16": "bfloat16",
    "single": "float32",
    "half_precision_of_double": "float32",
}


SIZES = (70, 5, 4, 2)
LOST = 6  # bits that inaccurate honest programs lose: 64 roundings


class Named(NamedTuple):
    """One planted bug, planted again, and the judge's diagnosis."""

    bug: str
    caught_by: str
    what: str
    caught: bool
    first: bool  # True if this bug, or one with the same description, is named first
    told: str
    named: bool  # True if any planted bug is named, except for its precision


class Planted(NamedTuple):
    """A bug in one implementation: its forward program, and its VJP if the bug is in the VJP."""

    op: str
    name: str
    caught_by: str
    what: str
    forward: Callable
    vjp: Callable | None = None

    def found(self) -> Found:
        """The bug as an implementation that was found in a file."""
        return Found(operator_named(self.op), self.forward, self.vjp)


def replanted(op: Operator) -> Iterator[Planted]:
    """The planted bugs of an operator, each in a different implementation."""
    other = another_way(op) or op.reference
    for bug in bugs_of_operator(op.name, op.family):
        here = _planted(bug, *bug.make(other, op.bare_vjp if bug.of_gradient else other))
        before = _planted(bug, *bug.in_reference)
        as_it_is = _of_few_bits(bug.name) or _of_conduct(bug) or _depends(here, before)
        yield here if as_it_is else _in_more_digits(here)


def _planted(bug: PlantedBug, forward: Callable, vjp: Callable | None) -> Planted:
    return Planted(bug.op, bug.name, bug.caught_by, bug.what, forward, vjp)


def another_way(op: Operator) -> Callable | None:
    """An honest implementation other than the reference that accepts every case, or None."""
    honest = [h for h in soak.here(op.name) if h.name != "reference" and h.only is None]
    honest = [h for h in honest if h.accuracy is None and not h.needs and h.name != "numba"]
    return honest[0].forward if honest else None


def _depends(d: Planted, before: Planted) -> bool:
    """True if the bug's outputs differ between the two implementations."""
    dtype = d.caught_by.rstrip("]").partition("[")[2]
    case = ordinary_case(operator_named(d.op), dtype, SIZES)
    calls = [InProcess([bug.found()]).call(d.op, case.arrays, case.statics) for bug in (d, before)]
    pairs = zip(*(call.outputs for call in calls), strict=False)
    return not all(np.array_equal(y, z, equal_nan=True) for y, z in pairs)


def _of_conduct(bug: PlantedBug) -> bool:
    """True for what a program does to memory: a copy in more digits would hide it."""
    return isinstance(rule_named(bug.caught_by.partition("[")[0]), Conduct)


def _of_few_bits(name: str) -> bool:
    return any(word in name for word in (*PRECISIONS, "narrow"))


def _in_more_digits(d: Planted) -> Planted:
    """The same bug, run in double precision and rounded if single precision is judged."""
    return d._replace(forward=_rounded(d.forward), vjp=d.vjp and _rounded(d.vjp))


def _rounded(program: Callable) -> Callable:
    def rounded(*args, **statics):
        numbers = [a for a in args if a.dtype.kind != "b"]
        if not numbers or np.finfo(np.result_type(*numbers)).eps != np.finfo(np.float32).eps:
            return program(*args, **statics)
        y = program(*wide(args), **statics)
        single = {"f": np.float32, "c": np.complex64}
        return each(y, lambda a: a if a is None else a.astype(single.get(a.dtype.kind, a.dtype)))

    return rounded


def named(d: Planted) -> Named:
    """Judge a bug by the check that catches it."""
    name, _, dtype = d.caught_by.rstrip("]").partition("[")
    how: dict = {"only_checks": (name,), "types": (dtype,), "shrink": False, "diagnose": True}
    session = Session(InProcess([d.found()]), "here", Settings(folder=None, **how))
    failed = next((r for r in results_of(session) if r.failed), None)
    told = failed.looks_like if failed else ""
    words = (words for word, words in PRECISIONS.items() if word in d.name)
    between = rule_named(name).between_calls and told == CHANGING
    first = told.startswith(d.what) or any(w in told for w in words) or between
    caught, some = failed is not None, _some_bug(d.op, told)
    return Named(d.name, d.caught_by, d.what, caught, caught and first, told, some)


def _some_bug(name: str, told: str) -> bool:
    """True if the diagnosis names a bug of the operator, except for its precision."""
    op = operator_named(name)
    bugs = (d for d in bugs_of_operator(op.name, op.family) if not _of_few_bits(d.name))
    return any(told.startswith(d.what) for d in bugs)


def of_operator(name: str, every: int = 1, lost: int = LOST) -> tuple[list[Named], list[Named]]:
    """Results of every n-th planted bug of an operator, and of inaccurate honest programs."""
    op = operator_named(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"), remembering():
        warnings.simplefilter("ignore")
        bugs = [named(d) for d in [*replanted(op)][::every]]
        return bugs, [named(d) for d in inaccurate(op, lost)]


def inaccurate(op: Operator, lost: int = LOST) -> Iterator[Planted]:
    """Honest programs with rounded arguments, rounded results, or random errors."""
    dtype = default_types(op, PROFILES["default"])[0]
    right = another_way(op) or op.reference
    digits = number_type(dtype).digits - lost
    noisy = {
        "arguments": lambda *a, **s: right(*(_few(x, digits) for x in a), **s),
        "results": lambda *a, **s: each(right(*a, **s), lambda y: _few(y, digits)),
        "noise": lambda *a, **s: each(right(*a, **s), lambda y: _noisy(y, 2.0**-digits)),
        "largest": lambda *a, **s: each(right(*a, **s), lambda y: _noise(y, 2.0**-digits)),
    }
    for what, program in noisy.items():
        if op.inputs or what != "arguments":
            yield Planted(op.name, f"inaccurate_{what}", f"value[{dtype}]", "digits", program)


def _few(x, digits: int):
    """Each number, or each of its parts, rounded to `digits` bits."""
    if x.dtype.kind == "c":
        return (_few(x.real, digits) + 1j * _few(x.imag, digits)).astype(x.dtype)
    if x.dtype.kind != "f":
        return x
    m, e = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(m, digits)), e - digits).astype(x.dtype)


def _noisy(y, size: float):
    """A random relative error in each entry."""
    return (y * (1 + size * _draws(y))).astype(y.dtype)


def _noise(y, size: float):
    """A random error in each entry, relative to the largest entry."""
    largest = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    return (y + size * largest * _draws(y)).astype(y.dtype)


def _draws(y):
    return np.random.default_rng(y.size).uniform(-1, 1, y.shape)


def results(names: list[str], every: int, lost: int, workers: int) -> dict[str, tuple]:
    """What `of_operator` finds for each operator: read where it was kept, or found and kept."""
    kept = Path(f".refssm/naming-{soak.digest(soak.SOURCES)}.jsonl")
    kept.parent.mkdir(exist_ok=True)
    known = {
        tuple(task): tuple([Named(*n) for n in some] for some in found)
        for task, found in stored.lines(kept)
    }
    tasks = [task for name in names if (task := (name, every, lost)) not in known]
    running = soak.as_they_come(of_operator, tasks, workers)
    with kept.open("a", encoding="utf-8") as lines:
        for task, found in track(running, total=len(tasks), disable=not sys.stderr.isatty()):
            known[task] = found
            lines.write(json.dumps([task, found]) + "\n")
            lines.flush()
    return {name: known[name, every, lost] for name in names}


def main(
    only: Annotated[str, typer.Option(help="Families or operators, separated by commas.")] = "",
    every: Annotated[int, typer.Option(help="Plant only every n-th bug.")] = 1,
    lost: Annotated[int, typer.Option(help="Bits that the honest programs lose.")] = LOST,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    show: Annotated[bool, typer.Option(help="Print the bugs that were not named first.")] = False,
    record: Annotated[bool, typer.Option(help="Add a row to docs/naming_rate.csv.")] = False,
) -> None:
    """Plant every bug in another implementation, and count how many are named first."""
    if record and (only or every > 1):
        raise typer.BadParameter("--record is for all bugs: without --only and --every")
    names = [op.name for op in OPERATORS if soak.among(op.name, only)]
    came = results(names, every, lost, workers)
    told = [n for some, _ in came.values() for n in some]
    rough = [n for _, some in came.values() for n in some if n.caught]
    for name, (some, honest) in sorted(came.items()):
        typer.echo(f"{name}: {sum(n.first for n in some)} of {sum(n.caught for n in some)}")
        for n in some if show else ():
            if n.caught and not n.first:
                typer.echo(f"  {n.bug} [{n.caught_by}], {n.what}: {n.told or '-'}")
        for n in honest:
            if n.named:
                typer.echo(f"  wrongly named as a bug: {n.bug}: {n.told}")
    caught = [n for n in told if n.caught]
    first = sum(n.first for n in caught)
    typer.echo(f"{first} of {len(caught)} planted bugs named first ({first / len(caught):.1%})")
    typer.echo(f"{len(told) - len(caught)} were not caught")
    blamed = sum(n.named for n in rough)
    typer.echo(
        f"{blamed} of {len(rough)} honest programs of too few bits were wrongly named as a bug"
    )
    if record:
        before = stored.read(stored.NAMING, stored.NamingRate)
        stored.write(stored.NAMING, [*before, rate(lost, told, rough)])


def rate(lost: int, told: list[Named], rough: list[Named]) -> stored.NamingRate:
    """One run in numbers, as `docs/naming_rate.csv` keeps them."""
    caught = [n for n in told if n.caught]
    others = [n for n in caught if not n.first]
    date, commit = stored.today()
    return stored.NamingRate(
        lost_bits=str(lost),
        bugs=str(len(caught)),
        named_first=str(sum(n.first for n in caught)),
        no_name=str(sum(not n.told for n in others)),
        another_bug=str(sum(n.named for n in others)),
        pattern=str(sum(bool(n.told) and not n.named for n in others)),
        honest_refused=str(len(rough)),
        honest_named=str(sum(n.named for n in rough)),
        date=date,
        commit=commit,
    )


if __name__ == "__main__":  # worker processes need the module's functions, not __main__'s
    from selftest import naming_rate

    typer.run(naming_rate.main)
