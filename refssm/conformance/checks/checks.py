"""Which checks an operator has, in which types, with how many cases: the profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from refssm._operator import Operator
from refssm.catalog import resumed
from refssm.conformance.cases import drawing as drawn
from refssm.conformance.cases.case import NOWHERE, Case, ordinary_case
from refssm.conformance.cases.drawing import cases
from refssm.conformance.checks import special_values as special
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.conduct import CONDUCT, WITHOUT_ARGUMENTS, behave
from refssm.conformance.checks.laws import LAWS, hold, laws_of
from refssm.conformance.checks.linear_laws import integers
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import number_type

# our VJP in double precision is judged by itself in long double, where there is one
WIDER_THAN_DOUBLE = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps / 1000
TAME_LAWS = frozenset({"additive", "scaling", "zero", "nan"})
# sums of two inputs are rounded before the implementation sees them, and float16 has few exponents
UNHELD = {"bfloat16": ("additive",), "float16": ("additive", "scaling")}


@dataclass(frozen=True)
class Profile:
    """Fixed counts, so that a seed means one thing."""

    value: int
    double: int
    gradient: int
    law: int
    laws: int  # how many of an operator's laws
    shrink: bool
    sizes: tuple[int, ...] = drawn.SIZES

    def of(self, cases: int) -> Profile:
        """The same with so many cases of each check that draws any; 0 leaves it as it is."""
        counts = ("value", "double", "gradient", "law") if cases else ()
        return replace(self, **{n: cases for n in counts if getattr(self, n)})


PROFILES = {
    "quick": Profile(value=25, double=0, gradient=0, law=5, laws=4, shrink=False),
    "default": Profile(value=25, double=40, gradient=25, law=10, laws=99, shrink=True),
    "thorough": Profile(
        value=250, double=400, gradient=250, law=100, laws=99, shrink=True, sizes=drawn.THOROUGH
    ),
}


@dataclass(frozen=True)
class Check:
    """One line of the report: a name, a type, how many cases, and the judge of one."""

    name: str
    op: Operator
    dtype: str
    count: int
    judge_case: Callable[[Candidate, Case], Verdict]
    judge_arrays: Callable[[Candidate, list[np.ndarray], dict], Verdict] | None = None
    strategy: dict | None = field(default_factory=dict)  # None: one ordinary case

    @property
    def id(self) -> str:
        """The check's name as an interface: operator/check[dtype]."""
        return f"{self.op}/{self.name}[{self.dtype}]"

    def cases(self, *, mixed: bool = True, between: Mapping = NOWHERE):
        """The strategy that draws its cases; `between` bounds sizes."""
        if self.strategy is None:
            sizes = (33, 40, 4, 2)
            return st.just(ordinary_case(self.op, self.dtype, sizes=sizes, between=between))
        return cases(self.op, self.dtype, mixed=mixed, between=between, **self.strategy)

    def judging(self, candidate: Candidate) -> Callable[[Case], Verdict]:
        """The judge of one case; a call without a result is its verdict."""

        def judge_case(case: Case) -> Verdict:
            try:
                return self.judge_case(candidate, case)
            except Broken as broken:
                return broken.verdict

        return judge_case


def types_of(op: Operator, half=False) -> tuple[str, ...]:
    """The types an operator is judged in, single precision first; 16 bits only where asked for."""
    of_complex = any(domain.kind == "complex" for domain in op.inputs.values())
    if op.constructor:
        of_complex = any(t.kind == "c" for t in op.output_types())
        return ("complex64", "complex128") if of_complex else ("float32", "float64")
    if of_complex:
        return ("complex64", "complex128")
    usual = ("float32", "float64", "complex64", "complex128")
    return (*usual, "float16", "bfloat16") if half else usual


def checks_of(op: Operator, profile: Profile, types: Iterable[str], *, vjp: bool) -> list[Check]:
    """The checks of an operator in `types`; laws and conduct run in the first of them."""
    types = list(types)
    if not types:
        return []
    checks = [_value(op, profile, t) for t in types]
    if op.state_outputs:
        checks += [_value(op, profile, t, "state") for t in types]
    if vjp:
        checks += [_gradient(op, profile, t) for t in types if not _double(t) or _extended(op)]
    for name in laws_of(op)[: profile.laws]:
        if name in UNHELD.get(types[0], ()):
            continue
        tame = name in TAME_LAWS
        contract, double = op.contract, _double(types[0])
        entries = contract.double_case_entries if double else contract.case_entries
        strategy = {"tame": tame, "entries": entries}
        law = _named(hold, name)
        at = special.at if name == "nan" else None
        checks.append(Check(name, op, types[0], profile.law, law, at, strategy))
    for name in CONDUCT if op.inputs else WITHOUT_ARGUMENTS:
        checks.append(Check(name, op, types[0], 1, _named(behave, name), strategy=None))
    return [c for c in checks if c.count]


def default_types(op: Operator, profile: Profile) -> list[str]:
    """The types of a run nobody narrowed: all, or single precision of one kind if quick.

    What takes no arrays is not told a type, and answers in double precision.
    """
    if op.constructor:
        return [types_of(op)[-1]]
    return [*types_of(op)] if profile.double else [types_of(op)[0]]


def _extended(op: Operator) -> bool:
    """Whether our VJP can be run in more than double precision: LAPACK cannot."""
    return bool(WIDER_THAN_DOUBLE) and op.contract.judges_gradients_in_double


def _double(dtype) -> bool:
    return number_type(dtype).u < 2.0**-50


def _named(run, name):
    return lambda candidate, case: run(name, candidate, case)


def _value(op, profile, dtype, name="value") -> Check:
    by_oracle = _double(dtype) and op.inputs
    entries = op.contract.double_case_entries if by_oracle else op.contract.case_entries
    sizes = tuple(s for s in profile.sizes if s <= entries)
    strategy = {"entries": entries, "sizes": sizes}
    count = profile.double or profile.value if _double(dtype) else profile.value
    judged, at = (value_of, _value_at) if name == "value" else (state_of, _state_at)
    return Check(name, op, dtype, count, judged, at, strategy)


def _gradient(op, profile, dtype) -> Check:
    count = profile.gradient
    contract, double = op.contract, _double(dtype)
    entries = contract.double_case_entries if double else contract.gradient_case_entries
    return Check(
        "gradient",
        op,
        dtype,
        count,
        gradient_of,
        None,
        {"entries": entries, "subnormal": False},
    )


def value_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade one forward call; exact integers must come out exact."""
    try:
        arrays, statics = candidate.given(case)
    except Broken as broken:
        return broken.verdict
    return _value_at(candidate, arrays, statics, exact=case.exact)


def state_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade the last state of one forward call."""
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
    """Grade one call of the VJP; cotangents are random, one-hot or one expanded number."""
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


def missing(check: Check, found: Iterable[str]) -> str:
    """Why a check cannot run with what the author gave, or ""."""
    if check.name == "split":
        other = resumed(check.op)
        if other is not None and other.name not in found:
            return f"needs {other.name}"
    return ""


def beside(op: Operator, profile: Profile, types: Iterable[str], judge_case) -> list[Check]:
    """The checks of a new implementation beside an old one, in every type."""
    values = (_value(op, profile, dtype) for dtype in types)
    return [replace(c, name="against", judge_case=judge_case, judge_arrays=None) for c in values]


NAMES = ("value", "state", "gradient", "against", *LAWS, *CONDUCT)
