"""The checks of an operator, in which types, and with how many cases per profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.cases.case import NOWHERE, Case, ordinary_case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.cases.drawing import SIZES, THOROUGH, cases
from refssm.conformance.cases.kinds import ends, structured
from refssm.conformance.cases.kinds.presets import OfPresets
from refssm.conformance.cases.kinds.published import OfPublished
from refssm.conformance.cases.sampling import Sampler
from refssm.conformance.cases.sizes import entries_of
from refssm.conformance.checks import laws
from refssm.conformance.checks.conduct import CONDUCT, OF_LENGTHS, OF_STREAMS
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.law import Graded, Judge, JudgeArrays, Rule, hold
from refssm.conformance.checks.linear_laws import integers
from refssm.conformance.judging.expected import DERIVED
from refssm.conformance.judging.verdict import Verdict, worst_of
from refssm.conformance.number_types import LONG_DOUBLE_IS_WIDER, number_type
from refssm.presets.catalog import presets_of

ORDINARY, SMALL = (33, 40, 4, 2), (5, 3, 4, 2)  # sizes of ordinary cases
DERIVED_SIZES, DERIVED_CASES = (1, 2, 3), 3  # a derivative of the oracle for each entry


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
    deep: bool = False  # long presets are longer: of kernels 12001 and 16384, not 2048 and 3001

    def of(self, cases: int) -> Profile:
        """The same with `cases` cases in each check that has any; 0 changes nothing."""
        counts = ("value", "double", "gradient", "law") if cases else ()
        return replace(self, **{n: cases for n in counts if getattr(self, n)})


PROFILES = {
    "quick": Profile(value=25, double=0, gradient=0, law=5, laws=4, shrink=False),
    "default": Profile(value=25, double=40, gradient=25, law=10, laws=99, shrink=True),
    "thorough": Profile(250, 400, 250, law=100, laws=99, shrink=True, sizes=THOROUGH, deep=True),
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
    of_presets: OfPresets | None = None  # None: it draws no presets
    of_published: OfPublished | None = None  # None: nor published sizes
    ordinary: tuple[int, ...] = ORDINARY  # sizes of the one ordinary case

    @property
    def name(self) -> str:
        """The name of its rule."""
        return self.rule.name

    @property
    def id(self) -> str:
        """The identifier of the check, a public interface: operator/check[dtype]."""
        return f"{self.op}/{self.name}[{self.dtype}]"

    def cases(self, *, mixed: bool = True, between: Mapping = NOWHERE, preset: str = "") -> Drawing:
        """What it draws; `between` bounds sizes. With `preset`, all cases are of that preset."""
        if self.strategy is None:
            case = ordinary_case(self.op, self.dtype, self.ordinary, between=between)
            return Drawing(lambda draw: case)
        usual = cases(self.op, self.dtype, mixed=mixed, between=between, **self.strategy)
        sized: tuple[Sampler, ...] = ()
        if self.of_published is not None and not preset:
            sized = self.of_published.samplers(self.op, self.dtype, between)
        if self.rule is VALUE and not preset:
            sized = (*sized, *ends.samplers(self.op, self.dtype, between))
        if self.of_presets is None:
            return Drawing(usual, published=sized)
        subnormal = self.strategy.get("subnormal", True)
        told = {"mixed": mixed, "between": between, "subnormal": subnormal}
        short, long = self.of_presets.samplers(self.op, self.dtype, preset, **told)
        apart = None if preset else self._structured(told)
        return Drawing(None if preset else usual, short, long, apart, sized)

    def _structured(self, told: dict):
        """The sampler of its structured cases, or None: float16 has not the range for them."""
        kinds = structured.kinds_of(self.op, self.rule.of_gradient)
        if number_type(self.dtype).half or not kinds:
            return None
        return cases(self.op, self.dtype, of_structure=kinds, **{**(self.strategy or {}), **told})

    def without_preset(self, name: str, between: Mapping = NOWHERE) -> str:
        """Why the check draws no cases of the preset `name`, or ""."""
        if self.of_presets is None:
            return "--preset draws cases of values and gradients only"
        of_preset = partial(self.of_presets.samplers, self.op, self.dtype, name)
        if of_preset(between=between)[0] is not None:
            return ""
        known = [preset.name for preset in presets_of(self.op)]
        if name in known:
            of = self.dtype if of_preset()[0] is None else "the ranges of --where"
            return f"no case of preset {name} in {of}"
        return f"no preset {name}: its presets are {', '.join(known) or 'none'}"

    def judging(self, candidate: Candidate) -> Callable[[Case], Verdict]:
        """A function that judges one case; a failed call becomes an error verdict."""

        def judge_case(case: Case) -> Verdict:
            candidate.length = 0
            try:
                verdict = self.judge_case(candidate, case)
            except Broken as broken:
                verdict = broken.verdict
            return replace(verdict, length=candidate.length)

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
    op: Operator,
    profile: Profile,
    types: Iterable[str],
    *,
    vjp: bool,
    streams: bool = False,
    lengths: str = "",
) -> list[Check]:
    """The checks of an operator in `types`; laws and most of conduct use only the first type."""
    types = list(types)
    if not types:
        return []
    checks = [_value(op, profile, t, VALUE) for t in types]
    if op.state_outputs:
        checks += [_value(op, profile, t, STATE) for t in types]
    if vjp:
        checks += [_gradient(op, profile, t) for t in types if has_gradient(op, t)]
    for law in laws.laws_of(op)[: profile.laws]:
        if types[0] in law.halves or (law.of_gradient and not vjp):
            continue
        strategy = {"tame": law.tame, "entries": entries_of(op, types[0])}
        judge = partial(hold, law)
        count = min(profile.law, law.most)
        checks.append(Check(law, op, types[0], count, judge, law.at, strategy))
    more = (*OF_LENGTHS * bool(lengths), *OF_STREAMS * streams)
    for conduct in (*CONDUCT, *more):
        if conduct.of_gradient and not (vjp and profile.gradient and _in_one_call(op, types[0])):
            continue
        if conduct.owed(op) and (op.inputs or conduct.without_arguments):
            judge = partial(hold, conduct)
            for dtype in types if conduct.every_type else types[:1]:
                sizes = ORDINARY if dtype == types[0] else SMALL
                checks.append(Check(conduct, op, dtype, 1, judge, strategy=None, ordinary=sizes))
    return [c for c in checks if c.count]


def default_types(op: Operator, profile: Profile) -> list[str]:
    """The types if the user chose none: all, or single precision of one kind if quick.

    An operator without array inputs has no type to follow and answers in double precision.
    """
    if op.constructor:
        return [types_of(op)[-1]]
    return [*types_of(op)] if profile.double else [types_of(op)[0]]


def has_gradient(op: Operator, dtype: str) -> bool:
    """True if gradients are judged in a type; in double precision by refssm's VJP in long double.

    LAPACK has no long double: the gradients of its solves are derivatives of the oracle.
    """
    return LONG_DOUBLE_IS_WIDER or not number_type(dtype).double or derived(op, dtype)


def _in_one_call(op: Operator, dtype: str) -> bool:
    """True if gradients of an ordinary case are judged in a type."""
    return has_gradient(op, dtype) and not derived(op, dtype)


def derived(op: Operator, dtype: str) -> bool:
    """True if gradients are judged by derivatives of the oracle, on a few small cases."""
    return number_type(dtype).double and not op.contract.judges_gradients_in_double


def _value(op, profile, dtype, rule: Graded) -> Check:
    entries = entries_of(op, dtype)
    sizes = tuple(s for s in profile.sizes if s <= entries)
    strategy = {"entries": entries, "sizes": sizes}
    count = profile.double or profile.value if number_type(dtype).double else profile.value
    presets = OfPresets(entries, profile.deep) if rule.of_presets else None
    first = rule is VALUE and dtype in (types_of(op)[0], *default_types(op, profile)[:1])
    sized = OfPublished(of_value=rule is VALUE, first=first, deep=profile.deep)
    return Check(rule, op, dtype, count, rule.hold, rule.at, strategy, presets, sized)


def _gradient(op, profile, dtype) -> Check:
    if profile.gradient and derived(op, dtype):
        strategy = {"entries": DERIVED, "sizes": DERIVED_SIZES, "subnormal": False}
        count = min(profile.gradient, DERIVED_CASES)
        return Check(GRADIENT, op, dtype, count, GRADIENT.hold, GRADIENT.at, strategy)
    count = profile.gradient
    entries = entries_of(op, dtype, of_gradient=True)
    strategy = {"entries": entries, "subnormal": False}
    presets = OfPresets(entries, profile.deep, of_gradient=True)
    sized = OfPublished(of_gradient=True, deep=profile.deep)
    how = GRADIENT.hold, GRADIENT.at, strategy, presets, sized
    return Check(GRADIENT, op, dtype, count, *how)


def value_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade one forward call; exact integers must give exact results."""
    try:
        return _graded(candidate, *candidate.answer(case), exact=case.exact)
    except Broken as broken:
        return broken.verdict


def value_at(candidate: Candidate, arrays, statics) -> Verdict:
    """Grade all outputs of one forward call but the last state."""
    try:
        return _graded(candidate, arrays, statics, candidate.results(arrays, statics))
    except Broken as broken:  # also while a failure is explained
        return broken.verdict


def _graded(candidate: Candidate, arrays, statics, y, exact=False) -> Verdict:
    op = candidate.op
    along = tuple(j for j in range(len(op.outputs)) if j not in op.state_outputs)
    verdict, gauged = candidate.grader.value(arrays, statics, y, along)
    if exact and verdict.ok:
        of_integers = integers(candidate, arrays, statics, y, gauged[0])
        return worst_of([verdict, of_integers]) if of_integers else verdict
    return verdict


def state_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade the last state that one forward call returns."""
    try:
        return _graded_state(candidate, *candidate.answer(case))
    except Broken as broken:
        return broken.verdict


def state_at(candidate: Candidate, arrays, statics) -> Verdict:
    """Grade the last state of one forward call."""
    try:
        return _graded_state(candidate, arrays, statics, candidate.results(arrays, statics))
    except Broken as broken:  # also while a failure is explained
        return broken.verdict


def _graded_state(candidate: Candidate, arrays, statics, y) -> Verdict:
    return candidate.grader.value(arrays, statics, y, candidate.op.state_outputs)[0]


def gradient_of(candidate: Candidate, case: Case) -> Verdict:
    """Grade one VJP call; cotangents are random, one-hot or one broadcast number."""
    try:
        arrays, statics = candidate.given(case)
    except Broken as broken:
        return broken.verdict
    cotangents, view = cotangents_of(case, arrays, statics, candidate.offer.views)
    return gradient_at(candidate, cotangents, arrays, statics, view)


def gradient_at(candidate: Candidate, cotangents, arrays, statics, view="") -> Verdict:
    """Grade each gradient of one VJP call; the worst verdict.

    A failure with views says so, if the same call with contiguous arguments is right.
    """
    given = candidate, cotangents, arrays, statics
    verdict = _gradient_of_view(*given, view)
    if not view or verdict.ok or verdict.died or not _gradient_of_view(*given, "").ok:
        return verdict
    told = f"{NOT_CONTIGUOUS.format(view)}: {verdict.message}; with contiguous ones it is right"
    return replace(verdict, message=told, kind=verdict.failure[1])


NOT_CONTIGUOUS = "called with arguments that are not contiguous ({})"


def _gradient_of_view(candidate: Candidate, cotangents, arrays, statics, view) -> Verdict:
    """The verdict on one VJP call with such a view of the arguments."""
    try:
        gradients = candidate.outputs([*cotangents, *arrays], statics, vjp=True, view=view)
    except Broken as broken:
        return broken.verdict
    return candidate.grader.gradients(gradients, cotangents, arrays, statics)


def beside(
    op: Operator,
    profile: Profile,
    types: Iterable[str],
    judge: Callable[[str, bool], Judge],
    vjp: bool,
) -> list[Check]:
    """The checks of a new implementation against an old one, in every type.

    `judge` gives the judge of a check by its id, of values or gradients; `vjp`: both have a VJP.
    """
    types = list(types)
    pairs = [(_value(op, profile, t, VALUE), AGAINST) for t in types]
    if vjp:
        extended = (t for t in types if has_gradient(op, t))
        pairs += [(_gradient(op, profile, t), AGAINST_GRADIENT) for t in extended]
    checks = [replace(c, rule=rule, judge_arrays=None) for c, rule in pairs if c.count]
    return [replace(c, judge_case=judge(c.id, c.rule.of_gradient)) for c in checks]


VALUE = Graded(
    name="value",
    sentence="The outputs are right on cases of every kind, and exact on exact integers.",
    hold=value_of,
    at=value_at,
    exact=True,
    of_presets=True,
)
STATE = Graded(
    name="state",
    sentence="The last state is right, if the operator returns one.",
    hold=state_of,
    at=state_at,
)
GRADIENT = Graded(
    name="gradient",
    sentence="The VJP is right for cotangents that are random, one-hot or constant, "
    "in several memory layouts; no input is subnormal.",
    hold=gradient_of,
    of_gradient=True,
    of_presets=True,
)
AGAINST = Rule(
    name="against",
    sentence="The new implementation is right wherever the old one of `--against` is right.",
    of_presets=True,
)
AGAINST_GRADIENT = Rule(
    name="against_gradient",
    sentence="Its gradient is right wherever that of the old one is; where both have a VJP.",
    of_gradient=True,
    of_presets=True,
)
COMPARING = (AGAINST, AGAINST_GRADIENT)
VECTORS = Rule(  # of files written earlier: no run draws these cases
    name="vectors",
    sentence="The outputs agree with the golden vectors of a file, within the allowed errors.",
)


def rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which their names are listed."""
    return (VALUE, STATE, GRADIENT, *COMPARING, *laws.LAWS, *CONDUCT, *OF_LENGTHS, *OF_STREAMS)


def rule_named(name: str) -> Rule:
    """The rule with this name, including `vectors`."""
    return {rule.name: rule for rule in (*rules(), VECTORS)}[name]


NAMES = tuple(rule.name for rule in rules())
