"""The checks of an operator, in which types, and with how many cases per profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from hypothesis import strategies as st

from refssm._operator import Operator
from refssm.conformance.cases.case import NOWHERE, Case, ordinary_case
from refssm.conformance.cases.drawing import SIZES, THOROUGH, cases
from refssm.conformance.checks import laws
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.conduct import CONDUCT, OF_STREAMS
from refssm.conformance.checks.law import Graded, Judge, JudgeArrays, Rule, hold
from refssm.conformance.checks.linear_laws import integers
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import number_type

# refssm's VJP in double precision is compared with itself in long double, if there is one
WIDER_THAN_DOUBLE = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps / 1000


@dataclass(frozen=True)
class Profile:
    """Fixed numbers of cases, so that a seed always gives the same cases."""

    value: int
    double: int
    gradient: int
    law: int
    laws: int  # the largest number of an operator's laws
    shrink: bool
    sizes: tuple[int, ...] = SIZES

    def of(self, cases: int) -> Profile:
        """The same with `cases` cases in each check that has any; 0 changes nothing."""
        counts = ("value", "double", "gradient", "law") if cases else ()
        return replace(self, **{n: cases for n in counts if getattr(self, n)})


PROFILES = {
    "quick": Profile(value=25, double=0, gradient=0, law=5, laws=4, shrink=False),
    "default": Profile(value=25, double=40, gradient=25, law=10, laws=99, shrink=True),
    "thorough": Profile(
        value=250, double=400, gradient=250, law=100, laws=99, shrink=True, sizes=THOROUGH
    ),
}


@dataclass(frozen=True)
class Check:
    """One line of the report: a rule, a type, the number of cases, and the judge of one case."""

    rule: Rule
    op: Operator
    dtype: str
    count: int
    judge_case: Judge
    judge_arrays: JudgeArrays | None = None
    strategy: dict | None = field(default_factory=dict)  # None: one ordinary case

    @property
    def name(self) -> str:
        """The name of its rule."""
        return self.rule.name

    @property
    def id(self) -> str:
        """The identifier of the check, a public interface: operator/check[dtype]."""
        return f"{self.op}/{self.name}[{self.dtype}]"

    def cases(self, *, mixed: bool = True, between: Mapping = NOWHERE):
        """The strategy that draws its cases; `between` bounds sizes."""
        if self.strategy is None:
            sizes = (33, 40, 4, 2)
            return st.just(ordinary_case(self.op, self.dtype, sizes=sizes, between=between))
        return cases(self.op, self.dtype, mixed=mixed, between=between, **self.strategy)

    def judging(self, candidate: Candidate) -> Callable[[Case], Verdict]:
        """A function that judges one case; a failed call becomes an error verdict."""

        def judge_case(case: Case) -> Verdict:
            try:
                return self.judge_case(candidate, case)
            except Broken as broken:
                return broken.verdict

        return judge_case


def types_of(op: Operator, half=False) -> tuple[str, ...]:
    """The types that an operator is judged in, single precision first; 16-bit types with `half`."""
    of_complex = any(domain.kind == "complex" for domain in op.inputs.values())
    if op.constructor:
        of_complex = any(t.kind == "c" for t in op.output_types())
        return ("complex64", "complex128") if of_complex else ("float32", "float64")
    if of_complex:
        return ("complex64", "complex128")
    if all(domain.real for domain in op.inputs.values()):
        return ("float32", "float64", "float16", "bfloat16")[: 4 if half else 2]
    usual = ("float32", "float64", "complex64", "complex128")
    return (*usual, "float16", "bfloat16") if half else usual


def checks_of(
    op: Operator, profile: Profile, types: Iterable[str], *, vjp: bool, streams: bool = False
) -> list[Check]:
    """The checks of an operator in `types`; laws and conduct use only the first type."""
    types = list(types)
    if not types:
        return []
    checks = [_value(op, profile, t, VALUE) for t in types]
    if op.state_outputs:
        checks += [_value(op, profile, t, STATE) for t in types]
    if vjp:
        checks += [_gradient(op, profile, t) for t in types if not _double(t) or _extended(op)]
    for law in laws.laws_of(op)[: profile.laws]:
        if types[0] in law.halves:
            continue
        contract, double = op.contract, _double(types[0])
        entries = contract.double_case_entries if double else contract.case_entries
        strategy = {"tame": law.tame, "entries": entries}
        judge = partial(hold, law)
        checks.append(Check(law, op, types[0], profile.law, judge, law.at, strategy))
    for conduct in (*CONDUCT, *(OF_STREAMS if streams else ())):
        if op.inputs or conduct.without_arguments:
            judge = partial(hold, conduct)
            checks.append(Check(conduct, op, types[0], 1, judge, strategy=None))
    return [c for c in checks if c.count]


def default_types(op: Operator, profile: Profile) -> list[str]:
    """The types if the user chose none: all, or single precision of one kind if quick.

    An operator without array inputs has no type to follow and answers in double precision.
    """
    if op.constructor:
        return [types_of(op)[-1]]
    return [*types_of(op)] if profile.double else [types_of(op)[0]]


def _extended(op: Operator) -> bool:
    """True if refssm's VJP can run in more than double precision; LAPACK cannot."""
    return bool(WIDER_THAN_DOUBLE) and op.contract.judges_gradients_in_double


def _double(dtype) -> bool:
    return number_type(dtype).u < 2.0**-50


def _value(op, profile, dtype, rule: Graded) -> Check:
    by_oracle = _double(dtype) and op.inputs
    entries = op.contract.double_case_entries if by_oracle else op.contract.case_entries
    sizes = tuple(s for s in profile.sizes if s <= entries)
    strategy = {"entries": entries, "sizes": sizes}
    count = profile.double or profile.value if _double(dtype) else profile.value
    return Check(rule, op, dtype, count, rule.hold, rule.at, strategy)


def _gradient(op, profile, dtype) -> Check:
    count = profile.gradient
    contract, double = op.contract, _double(dtype)
    entries = contract.double_case_entries if double else contract.gradient_case_entries
    strategy = {"entries": entries, "subnormal": False}
    return Check(GRADIENT, op, dtype, count, GRADIENT.hold, GRADIENT.at, strategy)


def value_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade one forward call; exact integers must give exact results."""
    try:
        arrays, statics = candidate.given(case)
    except Broken as broken:
        return broken.verdict
    return _value_at(candidate, arrays, statics, exact=case.exact)


def state_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade the last state that one forward call returns."""
    try:
        return _state_at(candidate, *candidate.given(case))
    except Broken as broken:
        return broken.verdict


def _state_at(candidate, arrays, statics) -> Verdict:
    y = candidate.results(arrays, statics)
    gauged = candidate.expect(arrays, statics)
    return candidate.graded(arrays, y, gauged, which=candidate.op.state_outputs)


def _value_at(candidate, arrays, statics, exact=False) -> Verdict:
    op = candidate.op
    along = tuple(j for j in range(len(op.outputs)) if j not in op.state_outputs)
    try:
        y = candidate.results(arrays, statics)
    except Broken as broken:
        return broken.verdict
    gauged = candidate.expect(arrays, statics)
    verdict = candidate.graded(arrays, y, gauged, which=along)
    if exact and verdict.ok:
        return integers(candidate, arrays, y[0], gauged[0]) or verdict
    return verdict


def gradient_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade one VJP call; cotangents are random, one-hot or one broadcast number."""
    try:
        arrays, statics = candidate.given(case)
    except Broken as broken:
        return broken.verdict
    op, rng, views = candidate.op, case.generator(700), candidate.offer.views
    cotangents, view = [], ""
    shapes, types = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
    for shape, dtype in zip(shapes, types, strict=True):
        style = int(rng.integers(4))
        d = rng.standard_normal(shape)
        if dtype.kind == "c":
            d = d + 1j * rng.standard_normal(shape)
        if style == 1:
            d = d * (np.arange(d.size) == rng.integers(max(d.size, 1))).reshape(shape)
            view = "negative strides" if "negative strides" in views else "every other entry"
        elif style == 2:
            d, view = np.broadcast_to(d.ravel()[:1].reshape((1,) * len(shape)), shape), "expanded"
        elif style == 3:
            view = "column-major"
        cotangents.append(case.type.rounded(d, real=not np.iscomplexobj(d)))
    view = view if view in views else ""
    return candidate.gradient(cotangents, arrays, statics, view=view)


def beside(op: Operator, profile: Profile, types: Iterable[str], judge_case) -> list[Check]:
    """The checks of a new implementation against an old one, in every type."""
    values = (_value(op, profile, dtype, VALUE) for dtype in types)
    return [replace(c, rule=AGAINST, judge_case=judge_case, judge_arrays=None) for c in values]


VALUE = Graded(
    name="value",
    sentence="The outputs are right on cases of every kind, and exact on exact integers.",
    hold=value_of,
    at=_value_at,
    exact=True,
)
STATE = Graded(
    name="state",
    sentence="The last state is right, if the operator returns one.",
    hold=state_of,
    at=_state_at,
)
GRADIENT = Graded(
    name="gradient",
    sentence="The VJP is right for cotangents that are random, one-hot or constant, "
    "in several memory layouts; no input is subnormal.",
    hold=gradient_of,
    of_gradient=True,
)
AGAINST = Rule(
    name="against",
    sentence="The new implementation is right wherever the old one of `--against` is right.",
)


VECTORS = Rule(  # of files written earlier: no run draws these cases
    name="vectors",
    sentence="The outputs agree with the golden vectors of a file, within the allowed errors.",
)


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which their names are listed."""
    return (VALUE, STATE, GRADIENT, AGAINST, *laws.LAWS, *CONDUCT, *OF_STREAMS)


def rule_named(name: str) -> Rule:
    """The rule with this name, including `vectors`."""
    return {rule.name: rule for rule in (*rules(), VECTORS)}[name]


NAMES = tuple(rule.name for rule in rules())
