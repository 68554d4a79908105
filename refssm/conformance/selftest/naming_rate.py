"""How often a planted bug is named: each is planted once more, in a program written another way.

    python -m refssm.conformance.selftest.naming_rate --only scan,ssd --every 1

The files of planted bugs are read again with an honest implementation in the place of the
reference: what they change is then changed in a program that adds in another order. A bug
written out in full, for which that changes nothing, is run in twice the digits and rounded. The
judge finds each by the check it names, and what it says the failure looks like is compared.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.progress import track

from refssm._operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.worker import InProcess
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import PROFILES, default_types
from refssm.conformance.diagnosis.suspects import DEVIATIONS, deviations_of
from refssm.conformance.gauges.gauge import wide
from refssm.conformance.judging.expected import remembering
from refssm.conformance.number_types import number_type
from refssm.conformance.planted import Deviation
from refssm.conformance.running.session import Session
from refssm.conformance.selftest import soak

# arithmetic in few bits, planted elsewhere, gives other roundings: the precision is what is named
PRECISIONS = {
    "float16": "TF32 or float16",
    "tf32": "TF32 or float16",
    "bfloat16": "bfloat16",
    "single": "float32",
}


SIZES = (70, 5, 4, 2)
LOST = 6  # bits of an honest program that is too inaccurate: 64 roundings


class Named(NamedTuple):
    """One planted bug, planted again, and what the judge said."""

    bug: Deviation
    caught: bool
    first: bool  # whether the bug, or one that tells the same in the same words, was named first
    told: str

    @property
    def named(self) -> bool:
        """Whether some planted bug was named, other than for its precision."""
        op = operator_named(self.bug.op)
        bugs = (d for d in deviations_of(op.name, op.family) if not _of_few_bits(d))
        return any(self.told.startswith(d.what) for d in bugs)


def replanted(op: Operator) -> Iterator[Deviation]:
    """The planted bugs of an operator, each in an implementation written another way."""
    before = {d.name: d for d in deviations_of(op.name, op.family)}
    for d in _reread(op):
        if d.name not in before:
            continue
        moved = _depends(d, before[d.name])
        yield d if moved or _of_few_bits(d) else _in_more_digits(d)


def another_way(op: Operator) -> Callable | None:
    """An honest implementation that is not the reference and takes every case."""
    honest = [h for h in soak.here(op.name) if h.name != "reference" and h.only is None]
    honest = [h for h in honest if h.accuracy is None and not h.needs and h.name != "numba"]
    return honest[0].forward if honest else None


def _reread(op: Operator) -> list[Deviation]:
    """The family's files of planted bugs, read with other references."""
    kept = {n: m for n, m in sys.modules.items() if n.startswith(f"{DEVIATIONS}.")}
    shared = {f"{DEVIATIONS}.planting", f"{DEVIATIONS}.arithmetic"}
    for name in {*kept} - shared:
        del sys.modules[name]
    try:
        with _other_references(op.family):
            return [
                d for d in import_module(f"{DEVIATIONS}.{op.family}").DEVIATIONS if d.op == op.name
            ]
    finally:
        for name in [n for n in sys.modules if n.startswith(f"{DEVIATIONS}.")]:
            del sys.modules[name]
        sys.modules.update(kept)


@contextmanager
def _other_references(family: str) -> Iterator[None]:
    """Each operator of a family with another implementation as its reference."""
    own = {op: op.reference for op in OPERATORS if op.family == family}
    try:
        for op, reference in own.items():
            other = another_way(op)
            if other is not None:
                object.__setattr__(op, "reference", _called_like(reference, other))
        yield
    finally:
        for op, reference in own.items():
            object.__setattr__(op, "reference", reference)


def _called_like(reference: Callable, other: Callable) -> Callable:
    """`other`, by the name and from the module of the reference."""

    @wraps(reference)
    def called(*args, **statics):
        return other(*args, **statics)

    return called


def _depends(d: Deviation, before: Deviation) -> bool:
    """Whether a bug gives other bits since its reference is another one."""
    dtype = d.caught_by.rstrip("]").partition("[")[2]
    case = ordinary_case(operator_named(d.op), dtype, SIZES)
    calls = [InProcess([bug.found()]).call(d.op, case.arrays, case.statics) for bug in (d, before)]
    pairs = zip(*(call.outputs for call in calls), strict=False)
    return not all(np.array_equal(y, z, equal_nan=True) for y, z in pairs)


def _of_few_bits(d: Deviation) -> bool:
    return any(word in d.name for word in (*PRECISIONS, "narrow"))


def _in_more_digits(d: Deviation) -> Deviation:
    """The same bug run in double precision and rounded, where single precision is judged."""
    return replace(d, forward=_rounded(d.forward), vjp=d.vjp and _rounded(d.vjp))


def _rounded(program: Callable) -> Callable:
    def rounded(*args, **statics):
        numbers = [a for a in args if a.dtype.kind != "b"]
        if not numbers or np.finfo(np.result_type(*numbers)).eps != np.finfo(np.float32).eps:
            return program(*args, **statics)
        y = program(*wide(args), **statics)
        single = {"f": np.float32, "c": np.complex64}
        ys = [a if a is None else a.astype(single.get(a.dtype.kind, a.dtype)) for a in _all(y)]
        return tuple(ys) if isinstance(y, tuple) else ys[0]

    return rounded


def _all(y):
    return y if isinstance(y, tuple) else (y,)


def named(d: Deviation) -> Named:
    """Judge a bug planted again by the check that catches it."""
    name, _, dtype = d.caught_by.rstrip("]").partition("[")
    session = Session(
        InProcess([d.found()]),
        "here",
        only_checks=(name,),
        types=(dtype,),
        shrink=False,
        folder=None,
        diagnose=True,
    )
    told = next((r for r in session.run() if r.failed), None)
    if told is None:
        return Named(_still(d), False, False, "")
    words = (words for word, words in PRECISIONS.items() if word in d.name)
    first = told.looks_like.startswith(d.what) or any(w in told.looks_like for w in words)
    return Named(_still(d), True, first, told.looks_like)


def _still(d: Deviation) -> Deviation:
    """Without its programs, which no process can send to another."""
    return replace(d, forward=np.copy, vjp=None)


def of_operator(name: str, every: int = 1, lost: int = LOST) -> tuple[list[Named], list[Named]]:
    """All planted bugs of an operator, or one in so many; and honest programs of too few bits."""
    op = operator_named(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"), remembering():
        warnings.simplefilter("ignore")
        bugs = [named(d) for d in [*replanted(op)][::every]]
        return bugs, [named(d) for d in inaccurate(op, lost)]


def inaccurate(op: Operator, lost: int = LOST) -> Iterator[Deviation]:
    """Honest programs that lose digits: of arguments, of results, at random, in each entry."""
    dtype = default_types(op, PROFILES["default"])[0]
    right = another_way(op) or op.reference
    digits = number_type(dtype).digits - lost
    noisy = {
        "arguments": lambda *a, **s: right(*(_few(x, digits) for x in a), **s),
        "results": lambda *a, **s: _each(right(*a, **s), lambda y: _few(y, digits)),
        "noise": lambda *a, **s: _each(right(*a, **s), lambda y: _noisy(y, 2.0**-digits)),
        "largest": lambda *a, **s: _each(right(*a, **s), lambda y: _noise(y, 2.0**-digits)),
    }
    for what, program in noisy.items():
        if op.inputs or what != "arguments":
            yield Deviation(op.name, f"inaccurate_{what}", f"value[{dtype}]", "digits", program)


def _each(y, change):
    return tuple(map(change, y)) if isinstance(y, tuple) else change(y)


def _few(x, digits: int):
    """Each number, or each part of it, to the nearest of so many bits."""
    if x.dtype.kind == "c":
        return (_few(x.real, digits) + 1j * _few(x.imag, digits)).astype(x.dtype)
    if x.dtype.kind != "f":
        return x
    m, e = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(m, digits)), e - digits).astype(x.dtype)


def _noisy(y, size: float):
    """Each entry off by so much of itself, at random."""
    return (y * (1 + size * _draws(y))).astype(y.dtype)


def _noise(y, size: float):
    """Each entry off by so much of the largest."""
    largest = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
    return (y + size * largest * _draws(y)).astype(y.dtype)


def _draws(y):
    return np.random.default_rng(y.size).uniform(-1, 1, y.shape)


def main(
    only: Annotated[str, typer.Option(help="Families or operators, with commas.")] = "",
    every: Annotated[int, typer.Option(help="One bug in so many.")] = 1,
    lost: Annotated[int, typer.Option(help="Bits that the honest programs lose.")] = LOST,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    show: Annotated[bool, typer.Option(help="Print those not named first.")] = False,
) -> None:
    """Plant every bug in another implementation, and count how many are named first."""
    names = [op.name for op in OPERATORS if soak.among(op.name, only)]
    running = soak.as_they_come(of_operator, [(name, every, lost) for name in names], workers)
    came = dict(track(running, total=len(names), disable=not sys.stderr.isatty()))
    told = [n for some, _ in came.values() for n in some]
    rough = [n for _, some in came.values() for n in some if n.caught]
    for (name, *_), (some, honest) in sorted(came.items()):
        typer.echo(f"{name}: {sum(n.first for n in some)} of {sum(n.caught for n in some)}")
        for n in some if show else ():
            if n.caught and not n.first:
                typer.echo(f"  {n.bug.name} [{n.bug.caught_by}], {n.bug.what}: {n.told or '-'}")
        for n in honest:
            if n.named:
                typer.echo(f"  called a bug's name: {n.bug.name}: {n.told}")
    caught = [n for n in told if n.caught]
    first = sum(n.first for n in caught)
    typer.echo(f"{first} of {len(caught)} planted bugs named first ({first / len(caught):.1%})")
    typer.echo(f"{len(told) - len(caught)} did no harm where they were planted")
    blamed = sum(n.named for n in rough)
    typer.echo(f"{blamed} of {len(rough)} honest programs of too few bits called by a bug's name")


if __name__ == "__main__":  # the worker processes find functions of the module, not of __main__
    from refssm.conformance.selftest import naming_rate as naming

    typer.run(naming.main)
