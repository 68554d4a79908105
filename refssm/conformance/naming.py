"""How often a planted bug is named: each is planted once more, in a program written another way.

    python -m refssm.conformance.naming --only scan,ssd --every 1

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
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from joblib import Parallel, delayed
from rich.progress import track

from refssm._operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance import soak
from refssm.conformance.cases import ordinary_case
from refssm.conformance.contracts import wide
from refssm.conformance.deviations import Deviation
from refssm.conformance.diagnosis.suspects import DEVIATIONS, deviations_of
from refssm.conformance.expectation import remembering
from refssm.conformance.plugin import operator_named
from refssm.conformance.session import Session
from refssm.conformance.worker import InProcess

# arithmetic in few bits, planted elsewhere, gives other roundings: the precision is what is named
PRECISIONS = {
    "float16": "TF32 or float16",
    "tf32": "TF32 or float16",
    "bfloat16": "bfloat16",
    "single": "float32",
}


SIZES = (70, 5, 4, 2)


class Named(NamedTuple):
    """One planted bug, planted again, and what the judge said."""

    bug: Deviation
    caught: bool
    first: bool  # whether the bug, or one that tells the same in the same words, was named first
    told: str


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
        return Named(d, False, False, "")
    words = (words for word, words in PRECISIONS.items() if word in d.name)
    first = told.looks_like.startswith(d.what) or any(w in told.looks_like for w in words)
    return Named(d, True, first, told.looks_like)


def of_operator(name: str, every: int = 1, start: int = 0) -> list[Named]:
    """All planted bugs of an operator, or every so many."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), remembering():
        warnings.simplefilter("ignore")
        return [named(d) for d in [*replanted(operator_named(name))][start::every]]


def main(
    only: Annotated[str, typer.Option(help="Families or operators, with commas.")] = "",
    every: Annotated[int, typer.Option(help="One bug in so many.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes.")] = 2,
    show: Annotated[bool, typer.Option(help="Print those not named first.")] = False,
) -> None:
    """Plant every bug in another implementation, and count how many are named first."""
    names = [op.name for op in OPERATORS if soak.among(op.name, only)]
    running: Any = Parallel(n_jobs=workers, return_as="generator")(
        delayed(of_operator)(name, every) for name in names
    )
    every_one = list(track(running, total=len(names), disable=not sys.stderr.isatty()))
    told = [n for some in every_one for n in some]
    for name, some in zip(names, every_one, strict=True):
        typer.echo(f"{name}: {sum(n.first for n in some)} of {sum(n.caught for n in some)}")
        for n in some if show else ():
            if n.caught and not n.first:
                typer.echo(f"  {n.bug.name} [{n.bug.caught_by}], {n.bug.what}: {n.told or '-'}")
    caught = [n for n in told if n.caught]
    first = sum(n.first for n in caught)
    typer.echo(f"{first} of {len(caught)} planted bugs named first ({first / len(caught):.1%})")
    typer.echo(f"{len(told) - len(caught)} did no harm where they were planted")


if __name__ == "__main__":  # the worker processes find functions of the module, not of __main__
    from refssm.conformance import naming

    typer.run(naming.main)
