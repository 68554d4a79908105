"""How far the judge's bounds are above the errors of good programs, and below those of bad ones.

    PYTHONPATH=tests python -m selftest.bounds --only krylov,dplr
    PYTHONPATH=tests python -m selftest.bounds --record  # all; writes docs/bounds.md

On each preset of an operator, in single precision, with one member in the batch: the largest
accepted error of a result, 16 u K0, over the largest error of refssm's honest implementations; and
the same for the mildest planted bug that is wrong there. A bad program can hide in a bound that is
far above the good ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from pathlib import Path
from typing import Annotated

import honest
import numpy as np
import typer

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance import planted
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.cases.cotangents import random_like
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.cases.stacking import free_arguments, of_complex
from refssm.conformance.gauges import cumulated
from refssm.conformance.gauges.contracts import gradient_programs, output_programs
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.allowed import bounds_of
from refssm.conformance.judging.expected import expect
from refssm.conformance.standard import Standard
from refssm.presets.catalog import presets_of
from refssm.presets.preset import Preset
from selftest import soak, stored

PAGE = Path("docs/bounds.md")
LENGTH, WIDTH, SEED = 300, 2, 5
LARGEST = 2**15  # the product of the sizes of a case
LOOSE = 64  # a bound so far above every good program lets bad ones pass
VISIBLE = 2  # a bug is wrong on a preset if it errs so many times more than every good program
MILD = 4  # a bug below so many times the bound is hardly seen


@dataclass
class Margin:
    """One result of an operator: the extremes over its presets."""

    operator: str
    result: str  # "K", or "dA" for a gradient
    how: str  # "measured" or "derived"
    above: float = 0.0  # bound over the largest honest error, at most
    at_least: float = inf  # and at least
    preset: str = ""  # where it is largest
    below: float = inf  # error of the mildest visible bug over the bound
    bugs: set[str] = field(default_factory=set)  # the visible ones
    hidden: set[str] = field(default_factory=set)  # of these, the ones that no preset shows

    def met(self, preset: Preset, bound: float, worst: float) -> None:
        """Take in one preset."""
        looseness = bound / worst
        if looseness > self.above:
            self.above, self.preset = looseness, str(preset)
        self.at_least = min(self.at_least, looseness)


def margins(op: Operator) -> list[Margin]:
    """The margins of each output, then of each gradient."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = _margins(op, gradient=False)
        return rows + (_margins(op, gradient=True) if op.differentiable else [])


def _margins(op: Operator, gradient: bool) -> list[Margin]:
    rows = [Margin(op.name, name, _how(op, gradient)) for name in _results(op, gradient)]
    best: dict[str, list[float]] = {}
    for preset in presets_of(op):
        case = case_of(op, preset)
        if case is None:
            continue
        arrays = [*cotangents(op, case), *case.arrays] if gradient else case.arrays
        gauged = expect(op, arrays, case.statics, op.bare_vjp if gradient else None)
        good = list(_of_honest(_honest(op, gradient), arrays, case, gauged))
        bounds = [_bound(g, case) for g in gauged]
        for j, row in enumerate(rows):
            worst = max((errors[j] for errors in good), default=0.0)
            if worst > 0 and np.isfinite(bounds[j]):
                row.met(preset, bounds[j], worst)
                for name, errors in _of_bugs(_bugs(op, gradient), arrays, case, gauged):
                    if errors[j] > VISIBLE * worst:
                        row.bugs.add(name)
                        best.setdefault(name, [0.0] * len(rows))[j] = max(
                            best.get(name, [0.0] * len(rows))[j], errors[j] / bounds[j]
                        )
    for j, row in enumerate(rows):
        row.hidden = {name for name in row.bugs if max(best[name]) <= 1}
        row.below = min((best[name][j] for name in row.bugs), default=inf)
    return rows


def _how(op: Operator, gradient: bool) -> str:
    measured = gradient_programs(op) if gradient else output_programs(op)
    how = "measured" if measured else "derived"
    return f"{how}, in norm" if op.name in cumulated.FORMS else how


def _results(op: Operator, gradient: bool) -> list[str]:
    if not gradient:
        return list(op.outputs)
    return [f"d{name}" for name in op.inputs if name not in op.discrete]


def case_of(op: Operator, preset: Preset) -> Case | None:
    """A case of the preset in single precision; None if it is large."""
    needed = of_complex(op, preset) or any(d.kind == "complex" for d in op.inputs.values())
    dtype = np.dtype("complex64" if needed else "float32")
    core = {dim: preset.sizes.get(dim, LENGTH if dim == "l" else WIDTH) for dim in core_dims(op)}
    if prod(preset.sizes.values()) > LARGEST // LENGTH:
        return None
    usual = ordinary_case(op, dtype)
    knobs = {name: usual.knobs[name] for name in free_arguments(op, preset)}
    batch = dict.fromkeys(op.batch_names, 1)
    parameters = dict(usual.parameters)
    core |= {dim: usual.sizes[dim] for dim in core if dim in op.parameters}
    return Case(op, dtype, core, batch, knobs, SEED, None, parameters, preset)


def cotangents(op: Operator, case: Case) -> list[np.ndarray]:
    """Normal random cotangents in the types of the outputs."""
    rng = case.generator(700)
    shapes = op.output_shapes(*case.arrays, **case.statics)
    types = op.output_types(*case.arrays)
    drawn = (random_like(shape, t, rng) for shape, t in zip(shapes, types, strict=True))
    return [d.astype(t) for d, t in zip(drawn, types, strict=True)]


def _bound(gauge: Gauge, case: Case) -> float:
    """The largest accepted error of a result."""
    held = Standard.of(case.dtype)
    if gauge.measure is not None and not gauge.measured:
        return float((held.room * held.u * gauge.measure.bound).max(initial=0.0))
    k = bounds_of(gauge, held, np.result_type(gauge.value.dtype, case.dtype)).a
    return float(k.max(initial=0.0))


def _honest(op: Operator, gradient: bool) -> dict[str, Callable]:
    made = {}
    for one in honest.implementations():
        function = one.vjp if gradient else one.forward
        if one.op == op.name and function and not (one.only or one.absent or one.mirror):
            made[one.name] = function
    return made


def _bugs(op: Operator, gradient: bool) -> dict[str, Callable]:
    made = {}
    for bug in planted.planted_bugs():
        function = bug.vjp if gradient else bug.forward
        if bug.op == op.name and bug.of_gradient == gradient and function:
            made[bug.name] = function
    return made


def _of_honest(programs, arrays, case, gauged) -> Iterator[list[float]]:
    """The errors of each honest program that takes the case."""
    for program in programs.values():
        try:
            yield errors_of(program, arrays, case, gauged)
        except NotImplementedError:  # so a program declines
            continue


def _of_bugs(bugs, arrays, case, gauged) -> Iterator[tuple[str, list[float]]]:
    """The errors of each planted bug that does not raise on the case."""
    for name, program in bugs.items():
        try:
            yield name, errors_of(program, arrays, case, gauged)
        except Exception:  # other checks catch a bug that raises, or returns another shape
            continue


def errors_of(program: Callable, arrays, case: Case, gauged: Sequence[Gauge]) -> list[float]:
    """The largest error of each result of a program."""
    found = several(program(*(np.copy(a) for a in arrays), **case.statics))
    found = [y for y in found if y is not None]
    return [_error(y, g) for y, g in zip(found, gauged, strict=True)]


def _error(y, gauge: Gauge) -> float:
    if np.shape(y) != gauge.value.shape:
        raise ValueError("another shape")
    if gauge.measure is not None and not gauge.measured:
        error = gauge.measure.of(y)
    else:
        error = np.where(np.isfinite(gauge.value), np.abs(y - gauge.value), 0)
    worst = float(error.max(initial=0.0))
    return worst if np.isfinite(worst) else inf


def lines(rows: list[Margin]) -> Iterator[str]:
    """The rows as text."""
    for row in rows:
        yield "  ".join(_cells(row))


def _cells(row: Margin) -> tuple[str, ...]:
    mild = f"{row.below:.3g}" if row.below < inf else "—"
    seen = f"{len(row.bugs) - len(row.hidden)} of {len(row.bugs)}" if row.bugs else "—"
    far = f"{row.above:.3g}{' (!)' if row.above > LOOSE else ''}" if row.above else "exact"
    near = f"{row.at_least:.3g}" if row.above else ""
    return row.operator, row.result, row.how, near, far, row.preset, mild, seen


HEAD = ("operator", "result", "bound", "at least", "at most", "on", "mildest bug", "bugs beyond")


def page(rows: list[Margin]) -> str:
    """The page with the margins of all operators."""
    date, commit = stored.today()
    loose = sum(row.above > LOOSE for row in rows)
    mild = sum(row.below < MILD for row in rows)
    summary = (
        f"{date}, after {commit}: {len(rows)} results, {loose} with a margin above {LOOSE}, "
        f"{mild} with a bug below {MILD} times the bound."
    )
    return f"{TEXT}\n{summary}\n\n{stored.table(HEAD, map(_cells, rows))}\n"


def main(
    only: Annotated[str, typer.Option(help="Families or operators, separated by commas.")] = "",
    record: Annotated[bool, typer.Option(help="Write the page of all operators.")] = False,
) -> None:
    """Print the margins of each result on the presets of its operator."""
    if record and only:
        raise typer.BadParameter("--record wants all operators: leave --only away")
    rows = []
    for op in OPERATORS:
        if presets_of(op) and soak.among(op.name, only):
            new = margins(op)
            rows += new
            for line in lines(new):
                typer.echo(line)
    if record:
        PAGE.write_text(page(rows), encoding="utf-8")


TEXT = f"""\
# Bounds beside the errors of good and of bad programs

This page is written by `PYTHONPATH=tests python -m selftest.bounds --record`. Do not edit it.

For each result of an operator with presets, in single precision, {LENGTH} steps where it has a
length: the largest accepted error, 16 u K0, over the largest error of all honest implementations,
at least and at most over the presets (and where it is most). (!) marks more than {LOOSE}: there a
bad program may hide on this preset. "Mildest bug" is the smallest error over the bound of a planted
bug, on the preset that shows it best, among the bugs that err more than {VISIBLE} times as much as
every honest program there; "bugs beyond" counts those with an error above the bound. Other cases
and other checks catch the others.
Bounds are measured by the errors of refssm's own programs (`docs/judge.md`), or derived; "in norm"
says that a second bound decides between wrong and right in norm.
"""


if __name__ == "__main__":
    typer.run(main)
