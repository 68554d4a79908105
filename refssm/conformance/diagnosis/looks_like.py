"""The likely cause of a failure: a planted bug with the same outputs, or a pattern of errors.

Every planted bug is itself an implementation. The judge looks for bugs that give the same outputs
as the failed implementation, in every call of the failing case and of further cases of the check.
Outputs that are one basis of many are compared in that basis. If there is no such bug, it describes
what the wrong entries have in common: where they start, a constant factor, or the precision.

Constants of a program's own: a limit of an argument, or a small number that it adds.

If an argument above c gives what c gives, then cutting it off at any t ≥ c changes no bit of the
outputs. Calls of the program find the smallest such t, by bisection. A number ε is found without
calls: it is the one with which the outputs of a planted bug are nearest to the recorded ones.
Either is reported only if the reference with this mistake gives the recorded outputs, as for a
planted bug.
"""

import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from refssm._declaration.adapted import adapters_of
from refssm._declaration.arguments import several
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.limits import may_hold
from refssm.conformance.checks.checks import PROFILES, VALUE, Check, checks_of
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.law import Graded
from refssm.conformance.diagnosis.likeness import distance, everywhere, where_finite
from refssm.conformance.diagnosis.pattern import shared_pattern
from refssm.conformance.diagnosis.suspects import answering_alike, bugs_in, misbehaving
from refssm.conformance.diagnosis.transcript import (
    CASES,
    Episode,
    SpokenCall,
    episode,
    episodes,
    expected,
    gave_arrays,
    graded,
    in_double,
    outcome_of,
    overflowed,
    refused,
    worker_of,
)
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import SO_CHANGED, THESE_BUGS, THIS_BUG
from refssm.conformance.planted import PlantedBug
from refssm.conformance.planted.planting import Epsilon, in_words
from refssm.conformance.standard import C

VALUES = 8  # ordinary cases, which a bug must explain beside those of a law
TRIED = 3  # failing calls: the smallest for a limit, the largest for an ε
LARGEST = 100_000  # numbers in a call: each limit takes about a hundred calls
DOUBLINGS = 40  # how far from its largest number an argument may be cut off
HALVINGS = 64
QUICK = 10_000  # numbers in a call: each ε takes about 80 runs of our own program
DIGITS = 1, 2, 3  # significant digits of a reported ε, fewest first


class Side(NamedTuple):
    """One side of a limit: how it cuts, what it is called, and the numbers beyond it."""

    cut: Callable
    words: str
    extreme: Callable
    toward: float  # where stricter limits lie


SIDES = (
    Side(np.minimum, "at or below", np.max, -np.inf),
    Side(np.maximum, "at or above", np.min, np.inf),
)


def clamped(check: Check, candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The limit of one argument that explains all recorded outputs: none or one."""
    if adapters_of(candidate.op):
        return []
    calls = sorted((call for e in heard for call in e.calls if not call.vjp), key=_size)
    failing = [call for call in calls if refused(candidate, call, call.outcome)]
    if not all(gave_arrays(call.outcome) for call in failing):
        return []
    for call in (call for call in failing[:TRIED] if _size(call) <= LARGEST):
        for bug in _limits(check, candidate, call):
            if distance(bug, candidate, calls, everywhere) is not None:
                return [bug]
    return []


def _size(call: SpokenCall) -> int:
    return sum(a.size for a in call.arguments)


def _limits(check: Check, candidate: Candidate, call: SpokenCall) -> Iterator[PlantedBug]:
    """The limits that this call shows, as bugs in the reference."""
    op = candidate.op
    for i, name in enumerate(op.inputs):
        a = call.arguments[i]
        if a.dtype.kind not in "fc" or not a.size or not np.isfinite(a).all():
            continue
        for part in ("real", "imag") if a.dtype.kind == "c" else ("real",):
            for side in SIDES:
                change = partial(_cut, part=part, side=side)
                limit = _limit(candidate, call, i, change, side.extreme(getattr(a, part)), side)
                if limit is not None:
                    called = f"`{name}`" if a.dtype.kind == "f" else f"the {part} part of `{name}`"
                    what = f"{called} kept {side.words} {limit:.4g}"
                    yield _bug(check, op, i, partial(change, limit=limit), what)


def _cut(a: np.ndarray, limit, part: str, side: Side) -> np.ndarray:
    """The numbers with one part cut off at a limit."""
    limit = np.finfo(a.dtype).dtype.type(limit)
    if a.dtype.kind != "c":
        return side.cut(a, limit)
    cut = a.copy()
    setattr(cut, part, side.cut(getattr(a, part), limit))
    return cut


def _limit(
    candidate: Candidate, call: SpokenCall, i: int, change, extreme, side: Side
) -> float | None:
    """The strictest limit in the domain that changes no bit of the outputs; None if each does."""
    domain = [*candidate.op.inputs.values()][i]

    def same(limit) -> bool:
        arguments = [*call.arguments]
        arguments[i] = change(arguments[i], limit=limit)
        if not may_hold(domain, arguments[i], call.arguments[i]):
            return False  # nothing is called outside of the domain, or of `--where`
        try:
            outputs = candidate.outputs(candidate.admitted(arguments, call.statics), call.statics)
        except (Broken, Declined):
            return False
        return all(np.array_equal(y, z) for y, z in zip(outputs, call.outcome.outputs, strict=True))

    kind = extreme.dtype.type
    if not same(np.nextafter(extreme, kind(side.toward))):
        return None
    lost = extreme or kind(np.copysign(np.ldexp(1.0, -DOUBLINGS // 2), side.toward))
    kept, outward = extreme, 2.0 if (lost < 0) == (side.toward < 0) else 0.5
    for _ in range(DOUBLINGS):
        if not same(lost):
            break
        kept, lost = lost, kind(lost * outward)
    else:
        return None  # the argument has no effect
    for _ in range(HALVINGS):
        middle = kind((kept + lost) / 2)
        if middle in (kept, lost):
            break
        kept, lost = (middle, lost) if same(middle) else (kept, middle)
    return float(kept)


def _bug(check: Check, op, i: int, change: Callable, what: str) -> PlantedBug:
    """The reference with one argument changed, as a planted bug."""

    def wrong(right, *arrays, **statics):
        return right(*(change(a) if k == i else a for k, a in enumerate(arrays)), **statics)

    return PlantedBug(op.name, "clamped", f"{check.name}[{check.dtype}]", what, wrong)


def with_epsilon(candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs whose small number, chosen again, explains all recorded outputs."""
    bugs = [bug for bug in bugs_in(candidate.op) if isinstance(bug.wrong, Epsilon)]
    calls = sorted((call for e in heard for call in e.calls), key=_size)
    if not bugs or any(call.vjp for call in calls):
        return []
    failing = [call for call in calls if refused(candidate, call, call.outcome)]
    if not all(gave_arrays(call.outcome) for call in failing):
        return []
    shown = [call for call in failing if _size(call) <= QUICK and _fits(candidate, call)]
    shown = shown[: -TRIED - 1 : -1]
    found = (_at_its_epsilon(bug, candidate, shown, calls) for bug in bugs)
    return [bug for bug in found if bug is not None]


def _fits(candidate: Candidate, call: SpokenCall) -> bool:
    """True if the outputs have the right number and shapes."""
    right = expected(candidate, call)
    return [y.shape for y in call.outcome.outputs] == [g.value.shape for g in right]


def _at_its_epsilon(bug, candidate: Candidate, shown, calls) -> PlantedBug | None:
    """The bug with the number that one of the calls shows, if it explains all calls."""
    for call in shown:
        epsilon = _nearest(bug, candidate, call)
        for digits in DIGITS if epsilon else ():
            number = float(f"{epsilon:.{digits - 1}e}")
            what = bug.what.replace(in_words(bug.wrong.number), in_words(number))
            told = replace(bug, what=what, wrong=bug.wrong.at(number))
            if distance(told, candidate, calls, everywhere) is not None:
                return told
    return None


def _nearest(bug: PlantedBug, candidate: Candidate, call: SpokenCall) -> float:
    """The ε with which the bug's outputs are nearest to the recorded ones; 0 if none is nearer."""
    from scipy.optimize import minimize_scalar  # a sixth of the imports of every process

    right = [g.value for g in expected(candidate, call)]

    def apart(exponent) -> float:
        """The mean distance from the bug's outputs over that from the right ones, at most 1."""
        other = replace(bug, wrong=bug.wrong.at(10.0**exponent))
        outputs = in_double(other, call).outputs
        if [np.shape(y) for y in outputs] != [y.shape for y in right]:
            return 1.0
        each = zip(call.outcome.outputs, outputs, right, strict=True)
        wrong = [(y, own, g, np.isfinite(y) & (y != g)) for y, own, g in each]
        shares = [(np.abs(y - own) / np.abs(y - g))[at] for y, own, g, at in wrong]
        shares = np.minimum(1, np.nan_to_num(np.concatenate(shares), nan=1.0))
        return float(shares.mean()) if shares.size else 1.0

    exponents = np.arange(-14, -1, 0.25)
    far = [apart(exponent) for exponent in exponents]
    best = int(np.argmin(far))
    if not far[best] < 1:
        return 0.0
    around = exponents[max(0, best - 1)], exponents[min(best + 1, len(far) - 1)]
    nearest: Any = minimize_scalar(apart, bounds=around, method="bounded")
    return 10.0 ** float(nearest.x)


FEW_BITS = ("float16", "tf32", "single")  # words in names of planted bugs
TOLD = 3  # the largest number of bugs to name


@dataclass(frozen=True)
class LooksLike:
    """The likely cause in words; `bugs` are the planted bugs with the same outputs."""

    text: str = ""
    bugs: tuple[str, ...] = ()

    @property
    def of_few_bits(self) -> bool:
        """True if the cause is arithmetic with fewer bits than the type."""
        named = any(word in bug for bug in self.bugs for word in FEW_BITS)
        return named or (not self.bugs and " bits" in self.text)


def diagnose(
    check: Check,
    candidate: Candidate,
    case: Case,
    drawing: Drawing,
    seed: int,
    over: Callable[[], bool] = lambda: False,
) -> LooksLike:
    """The planted bugs with the same outputs, else a pattern of the errors, else nothing.

    Once `over()` is true, no other bug is compared.
    """
    with remembering(), _quiet():
        beside = values_beside(check, candidate, seed)
        heard = episodes(check, candidate, case, drawing, seed) + beside
        alike = answering_alike(check, candidate, heard, over=over)
        if over():
            return _told(check, candidate, heard, alike)
        if len(alike) > 1 and len(heard) > 1:  # more cases, to tell them apart
            heard = episodes(check, candidate, case, drawing, seed, enough=CASES) + beside
            alike = answering_alike(check, candidate, heard, among=alike)
        if not alike and (finite := _alike_where_finite(check, candidate, heard)):
            return _told(check, candidate, heard, finite, "the same finite outputs")
        if not alike and check.strategy is None:
            alike = misbehaving(check, candidate, case, heard)
        alike = alike or with_epsilon(candidate, heard)
        if not alike and (again := in_their_basis(check, candidate, heard)):
            return _told_of_basis(again, heard)
        drawn = check.strategy is not None  # a limit shows in values, which have smaller cases
        if not alike and drawn and (limits := clamped(check, candidate, heard)):
            return _told(check, candidate, heard, limits, found=SO_CHANGED)
        return _told(check, candidate, heard, alike)


def values_beside(check: Check, candidate: Candidate, seed: int) -> list[Episode]:
    """Ordinary cases beside those of other checks: what explains NaN, or a call without steps, may
    be false of the values."""
    rule = check.rule
    if rule.of_gradient or rule.between_calls or isinstance(rule, Graded):
        return []
    of_type = checks_of(candidate.op, PROFILES["quick"], [check.dtype], vjp=False)
    value = next(c for c in of_type if c.rule is VALUE)
    own = seed ^ zlib.crc32(check.id.encode()) ^ zlib.crc32(value.id.encode())  # as `value` draws
    drawn = value.cases(between=candidate.between).cases(value.count, own)
    return [episode(value, candidate, case) for case in islice(drawn, VALUES)]


def _alike_where_finite(check: Check, candidate: Candidate, heard: list[Episode]):
    """The planted bugs that overflow, too, and give the same outputs where neither did."""
    if not any(map(overflowed, heard)):
        return []
    return answering_alike(check, candidate, heard, where=where_finite)


def diagnose_heard(check: Check, candidate: Candidate, heard: list[Episode]) -> LooksLike:
    """As `diagnose`, for calls that were already recorded."""
    with _quiet():
        return _told(check, candidate, heard, answering_alike(check, candidate, heard))


@contextmanager
def _quiet():
    """Silence warnings: planted bugs overflow and cast, which does not concern the user."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _told(
    check, candidate, heard: list[Episode], alike, same="the same outputs", found=""
) -> LooksLike:
    """The diagnosis in words; the nearest bug comes first."""
    if not alike:
        return LooksLike(shared_pattern(check, candidate, heard))
    judged = sum(e.verdict.grade != "-" for e in heard)  # cases not judged show nothing
    cases = f"{judged} of {judged} cases" if judged > 1 else "this case"
    several = len({d.what for d in alike}) > 1
    found = found or (THESE_BUGS if several else THIS_BUG) + " into the reference,"
    told = f"{_names(alike)}{found} gives {same} in {cases}"
    return LooksLike(told, tuple(d.name for d in alike))


def _names(bugs: list[PlantedBug]) -> str:
    """What a few bugs do, the likeliest first."""
    first, *others = dict.fromkeys(d.what for d in bugs)
    return first + (f" (or: {'; or: '.join(others[: TOLD - 1])})" if others else "")


def _told_of_basis(bugs: list[PlantedBug], heard: list[Episode]) -> LooksLike:
    """The diagnosis of outputs in another basis than the reference's."""
    failing = sum(not e.verdict.ok for e in heard)
    told = f"{_names(bugs)}: put into the right outputs in their basis, it gives these in"
    return LooksLike(f"{told} {failing} of {failing} failing cases", tuple(d.name for d in bugs))


def in_their_basis(check: Check, candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs that give all refused outputs in the basis of these, one of many.

    In another basis a bug gives other outputs. Either the vectors are right and show the basis, or
    the bug undoes itself: what is transposed, conjugated or reversed twice is right in every basis;
    columns that moved on are in place after one round of all.
    """
    if not candidate.op.contract.basis_free or check.rule.of_gradient:
        return []
    calls = [call for e in heard for call in e.calls if refused(candidate, call, call.outcome)]
    if not calls or any(call.vjp or not _gave_axes(call) for call in calls):
        return []
    return [d for d in bugs_in(candidate.op) if not d.vjp and _in_their_basis(d, candidate, calls)]


def _gave_axes(call: SpokenCall) -> bool:
    """True if the call returned arrays, and none of them is a single number."""
    return gave_arrays(call.outcome) and all(y.ndim for y in call.outcome.outputs)


def _in_their_basis(d: PlantedBug, candidate: Candidate, calls: list[SpokenCall]) -> bool:
    """True if the bug is refused in every call, and gives these outputs in their basis."""
    worker = worker_of(d, candidate)
    owns = ((call, outcome_of(worker, d.op, call, candidate)) for call in calls)
    if not all(refused(candidate, call, own) for call, own in owns):
        return False
    return any(
        all(_right_after(d, candidate, call, times(call.outcome.outputs)) for call in calls)
        for times in (lambda outputs: 1, lambda outputs: max(1, outputs[-1].shape[-1] - 1))
    ) or all(_same_in_their_basis(d, candidate, call) for call in calls)


def _same_in_their_basis(d: PlantedBug, candidate: Candidate, call: SpokenCall) -> bool:
    """True if the bug, put into the right modes in the order and with the phases of their vectors,
    gives these outputs.

    Outputs are the modes w, what is rotated by Vᴴ, and V; of each column of theirs, the right one
    is that with the largest projection.
    """
    theirs = call.outcome.outputs
    double = {"f": np.float64, "c": np.complex128}
    values = (g.value for g in expected(candidate, call))
    *modes, V = (y.astype(double[y.dtype.kind]) for y in values)
    if not modes:
        return False
    if V.ndim != 2 or theirs[-1].shape != V.shape or not np.isfinite(theirs[-1]).all():
        return False
    G = V.conj().T @ theirs[-1]
    i = np.argmax(np.abs(G), axis=0)
    size = np.abs(G[i, np.arange(len(i))])
    if len(set(i.tolist())) < len(i) or not size.all():
        return False
    phase = G[i, np.arange(len(i))] / size
    turned = [(x[i].T * phase.conj()).T for x in modes[1:]]
    right = (modes[0][i], *turned, V[:, i] * phase)
    try:
        outputs = several(d.wrong(lambda *_, **__: right, **call.statics))
    except Exception:  # it does not fit these outputs
        return False
    alike = len(outputs) == len(theirs) and all(map(_near, theirs, outputs))
    return alike and not all(map(_near, right, outputs))  # else it changes nothing here


def _near(y, wanted) -> bool:
    """True if the arrays have one type, and are equal up to the roundings of an eigensolver."""
    if np.shape(y) != np.shape(wanted) or y.dtype != wanted.dtype:
        return False
    size = np.abs(wanted).max(initial=0)
    return bool(np.abs(y - wanted).max(initial=0) <= C * len(y) * np.finfo(y.dtype).eps * size)


def _right_after(d: PlantedBug, candidate: Candidate, call: SpokenCall, times: int) -> bool:
    """True if the outputs are right after the bug was put into them so many times."""
    outputs = call.outcome.outputs
    shapes = [np.shape(y) for y in outputs]
    for _ in range(times):
        try:
            outputs = several(d.wrong(lambda outputs=outputs, **_: outputs, **call.statics))
        except Exception:  # it does not fit these outputs
            return False
    same = [np.shape(y) for y in outputs] == shapes
    return same and graded(candidate, call, outputs, expected(candidate, call)).ok
