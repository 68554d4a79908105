"""Make a failing case as simple as its failure allows: first its choices, its sizes, its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain, product

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import ENDS, Case, Knob
from refssm.conformance.cases.limits import may_hold
from refssm.conformance.cases.sampling import Sample
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.piece import key_of
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.verdict import Verdict
from refssm.domains import DISCRETE, Domain

SHRINK_TRIES = 120  # a fixed number, so that machines agree
PLAIN_TRIES = 80  # beside them, of plain cases: these are tiny
OTHER_TRIES = 60  # of a failure beside a worse one of the same check
LISTED = 100  # choices below are from a list, in which all lower ones are tried; seeds are above
FEW = 3  # of other choices, so many are tried
TINY = ((1, 1), (2, 1), (2, 2), (3, 2))  # lengths and widths to try first
TINY_SEEDS = 3  # and with so many seeds each
REDRAWS = 3
VANISHING = frozenset({"gaps", "impulse", "late"})

Arrays = list[np.ndarray]


def never() -> bool:
    """No end by the clock."""
    return False


@dataclass
class Shrinking:
    """A failing case, made simpler step by step; each step fails in the same way.

    After `most` new cases, or once `over()` is true, no new case is tried. `verdicts` are those
    known by key, so a non-deterministic implementation gets one consistent report.
    """

    judge_case: Callable[[Case], Verdict]
    sample: Sample
    verdict: Verdict
    verdicts: dict[str, Verdict | None] = field(default_factory=dict)
    between: Mapping = field(default_factory=dict)  # the ranges of sizes
    tick: Callable[[int], None] = lambda tries: None
    over: Callable[[], bool] = never
    most: int = field(default_factory=lambda: SHRINK_TRIES)
    tries: int = 0

    @property
    def case(self) -> Case:
        """The simplest failing case so far."""
        return self.sample.case

    def shrink(self, known: Iterable[Case] = ()) -> None:
        """Make the case simpler; not if it ended the process, which can be restarted only once.

        What one would try by hand comes first: it costs little, and most failures are there. The
        `known` cases failed in another type.
        """
        if self.verdict.died or any(self._fails(Sample(case)) for case in known):
            return
        if not self._tiny(alone=True):
            most, self.most = self.most, self.most - self.most // 4  # the rest is for sizes
            self._lower_choices()
            self.most = most
            self._tiny(alone=True)
        if max(*self.case.sizes.values(), *self.case.batch.values(), 1) > 1:
            _ = self._plain() or self._tiny(alone=False)
        self._lower_knobs()
        self._lower_sizes()

    def _tiny(self, alone: bool) -> bool:
        """Take the first tiny case that fails, of one member of the batch or of several; False if
        none does."""
        tiny = tiny_cases(self.case, self.between)
        of = (case for case in tiny if (max(case.batch.values(), default=1) == 1) == alone)
        return any(self._fails(Sample(case)) for case in of)

    def _plain(self) -> bool:
        """Take the first plain case that fails; these are not counted among the others."""
        before, most = self.tries, self.most
        self.most += PLAIN_TRIES
        found = any(self._fails(Sample(case)) for case in plain_cases(self.case, self.between))
        self.most = most + self.tries - before
        return found

    def _lower_knobs(self) -> None:
        """Give each argument its simplest kind of values, if the failure stays."""
        for name, domain in self.case.op.inputs.items():
            for knob in simpler_knobs(domain, self.case.knobs.get(name)):
                attempt = replace(self.case, knobs={**self.case.knobs, name: knob})
                if self._fails(Sample(attempt)):
                    break

    def _lower_choices(self) -> None:
        """Try the first entry for each choice, then all earlier ones, until no single one fails."""
        self._each_choice(lambda chosen: range(min(chosen, 1)))
        while self._each_choice(lambda chosen: range(chosen if chosen < LISTED else FEW)):
            pass

    def _each_choice(self, lower: Callable[[int], Iterable[int]]) -> bool:
        """Replace each choice by the first of `lower` numbers that fails; True if one does."""
        before, place = self.sample, 0
        while place < len(self.sample.choices):  # a lower choice may end with fewer choices
            chosen = self.sample.choices
            for other in lower(chosen[place]):
                attempt = self.sample.changed([*chosen[:place], other, *chosen[place + 1 :]])
                if self._fails(attempt):
                    break
            place += 1
        return self.sample is not before

    def _lower_sizes(self) -> None:
        """Halve each size, also to sizes that are never drawn."""
        for dim, size in self.case.sizes.items():
            low, high = int(self.between.get(dim, (1, 1))[0]) - 1, size
            while high - low > 1:
                middle = (low + high) // 2
                fails = any(self._fails(Sample(case)) for case in self._sized(dim, middle))
                low, high = (low, middle) if fails else (middle, high)

    def _sized(self, dim: str, size: int) -> Iterator[Case]:
        """The case with another size; where it is tiny also with other seeds, which cost little."""
        tiny = max(self.case.sizes.values()) <= TINY[-1][0]
        for step in range(TINY_SEEDS if tiny else 1):
            seed = (self.case.seed + step) % 2**32
            attempt = replace(self.case, sizes={**self.case.sizes, dim: size}, seed=seed)
            if admitted(attempt):
                yield attempt

    def _fails(self, sample: Sample) -> bool:
        """True if a case fails in the same way; then it is the simplest one so far."""
        key = key_of(sample.case)
        if key not in self.verdicts:
            if self.tries >= self.most or self.over():
                return False
            self.tries += 1
            self.tick(self.tries)
            try:
                self.verdicts[key] = self.judge_case(sample.case)
            except Declined:
                self.verdicts[key] = None
        verdict = self.verdicts[key]
        if verdict is None or verdict.failure != self.verdict.failure:
            return False
        self.sample, self.verdict = sample, verdict
        return True


def simpler_knobs(domain: Domain, knob: Knob | None) -> Iterator[Knob]:
    """Kinds of values that are simpler than this one, the simplest first."""
    if knob is None:  # a preset draws this argument
        return
    first = next(iter(domain.maps)), next(iter(domain.textures))
    for name, texture in (first, (first[0], knob.texture), (knob.map, first[1])):
        if (name, texture) != (knob.map, knob.texture):
            yield Knob(name, texture, knob.real)


def plain_cases(case: Case, between: Mapping) -> Iterator[Case]:
    """Cases of one or two steps with ones; with the largest, the smallest or any numbers of one
    kind in the arguments that have it."""
    if case.preset is not None or not case.sizes:
        return
    domains, alone = case.op.inputs, dict.fromkeys(case.batch, 1)
    first, *others = case.sizes
    kinds = dict.fromkeys(m for domain in domains.values() for m in domain.maps)
    of_one = product((1,), (*ENDS, ""), kinds)
    for length, texture, kind in chain(of_one, product((2,), ("",), kinds)):
        sizes = {first: length, **dict.fromkeys(others, 1)}
        sizes = {d: int(max(n, between.get(d, (1, 1))[0])) for d, n in sizes.items()}
        knobs = {n: plain_knob(d, kind, texture, case.knobs[n].real) for n, d in domains.items()}
        attempt = replace(case, sizes=sizes, batch=alone, knobs=knobs)
        if all(n <= case.sizes[d] for d, n in sizes.items()) and admitted(attempt):
            yield attempt


def plain_knob(domain: Domain, kind: str, texture: str, real: bool) -> Knob:
    """The knob of an argument in a case of one kind of values: that kind, or its simplest one."""
    plain = next(iter(domain.maps)), next(iter(domain.textures))
    if kind not in domain.maps or domain.kind in DISCRETE or domain.fit is not None:
        return Knob(*plain, real)
    return Knob(kind, texture or plain[1], real)


def tiny_cases(case: Case, between: Mapping) -> Iterator[Case]:
    """Cases of one to three steps, and of one chunk and one step more, without and then with the
    batch, each with three seeds."""
    first, *others = case.sizes
    alone = dict.fromkeys(case.batch, 1)
    longer = ((int(case.parameters["chunk"]) + 1, 1),) if "chunk" in case.parameters else ()
    for batch, (length, width) in product((alone, case.batch), (*TINY, *longer)):
        sizes = {first: length, **dict.fromkeys(others, width)}
        sizes = {d: int(max(n, between.get(d, (1, 1))[0])) for d, n in sizes.items()}
        smaller = (sizes, batch) != (case.sizes, case.batch)
        if smaller and all(n <= case.sizes[d] for d, n in sizes.items()):
            seeds = ((case.seed + step) % 2**32 for step in range(TINY_SEEDS))
            attempts = (replace(case, sizes=sizes, batch=batch, seed=seed) for seed in seeds)
            yield from filter(admitted, attempts)


def admitted(case: Case) -> bool:
    """True if the operator's parameters and the constructors of its preset allow these sizes."""
    parameters = case.op.parameters
    if not all(
        parameters[d].admits(n, case.sizes) for d, n in case.sizes.items() if d in parameters
    ):
        return False
    if case.preset is None:
        return True
    try:
        # a preset may derive a size from others: `mamba_layer` has twice as many channels inside
        sizes = case.op.sizes(*case.arrays, **case.statics)
    except ValueError:  # no half of a spectrum has an odd number of modes, for example
        return False
    return case.sizes.items() <= sizes.items()


def simplest_values(
    check: Check,
    candidate: Candidate,
    case: Case,
    arguments: tuple[Arrays, dict],
    verdict: Verdict,
    over: Callable[[], bool] = never,
) -> tuple[Arrays, set[str], Verdict]:
    """Simplified arrays, the names of those whose values do not matter, and the verdict."""
    (arrays, statics), judge = arguments, check.judge_arrays
    assert judge is not None

    def accepted(attempt: Arrays) -> Arrays | None:
        """The attempt as `only` returns it; None if it declines it or changes a size."""
        try:
            kept, told = candidate.narrowed(attempt, statics)
        except (Broken, Declined):
            return None
        sizes = [a.shape for a in kept] == [a.shape for a in attempt]
        return kept if sizes and told == statics else None

    def infinite(attempt: Arrays) -> bool:
        with np.errstate(all="ignore"):
            sizes = [np.abs(g.value) for g in candidate.grader.expect(attempt, statics)]
        return not all((size <= case.type.max).all() for size in sizes)

    def fails(attempt: Arrays) -> bool:
        if over():
            return False
        try:
            alike = judge(candidate, attempt, statics).failure == verdict.failure
        except Declined:
            return False
        return alike and (meant or not infinite(attempt))  # at a pole a right program may give NaN

    with remembering():
        meant = infinite(arrays)
        if not fails(arrays):  # fails only by the exact integer rule, or not in every call
            return arrays, set(), verdict
        arrays, anything = simplified(case, arrays, fails, accepted)
        arrays = first_entries(case, arrays, fails, accepted, {*candidate.between})
        return arrays, anything, judge(candidate, arrays, statics)


def first_entries(
    case: Case,
    arrays: Arrays,
    fails: Callable[[Arrays], bool],
    admitted: Callable[[Arrays], Arrays | None] = lambda attempt: attempt,
    fixed: Set[str] = frozenset(),
) -> Arrays:
    """The first entry along each axis, or the first two, if the failure stays.

    Simplified values may fail in fewer steps than those that were drawn. Sizes with a range of
    `--where` are `fixed`.
    """
    op = case.op
    if any(domain.kind in DISCRETE for domain in op.inputs.values()):
        return arrays
    axes = [(*op.batch_axes[i], *op.input_dims[i]) for i in range(len(arrays))]
    named = dict.fromkeys(dim for of in axes for dim in of if dim.isidentifier())
    derived = {dim for of in axes for dim in of if not dim.isidentifier()}
    # sizes that a keyword gives or divides: it would not follow
    given = {*op.static, *op.parameters} | {
        getattr(d, "divides", "") for d in op.parameters.values()
    }
    for dim in named:
        if dim in given or dim in fixed or any(dim in other for other in derived):
            continue
        for count in (1, 2):
            attempt = [_first(a, of, dim, count) for a, of in zip(arrays, axes, strict=True)]
            if all(map(np.array_equal, attempt, arrays)):
                break
            kept = admitted(attempt) if _fit(case, attempt) else None
            if kept is not None and fails(kept):
                arrays = kept
                break
    return arrays


def _fit(case: Case, arrays: Arrays) -> bool:
    """True if the arrays are as a whole what their domains want, as unitary matrices are."""
    of = zip(case.op.inputs.values(), arrays, strict=True)
    return all(
        np.array_equal(case.type.rounded(domain.fit(a), real=not np.iscomplexobj(a)), a)
        for domain, a in of
        if domain.fit
    )


def _first(a: np.ndarray, axes: tuple[str, ...], dim: str, count: int) -> np.ndarray:
    """The first entries along every axis of this name."""
    place = tuple(slice(count) if name == dim else slice(None) for name in axes)
    return np.ascontiguousarray(a[place]).reshape(a[place].shape)


def simplified(
    case: Case,
    arrays,
    fails: Callable[[Arrays], bool],
    admitted: Callable[[Arrays], Arrays | None] = lambda attempt: attempt,
):
    """Arrays replaced by zeros, ones, a constant or one entry, if the failure stays.

    Also the names of the arrays whose values do not matter: the failure stays for other draws of
    them. `admitted` returns an attempt as the implementation accepts it, or None.
    """
    arrays, anything = list(arrays), set()
    for i, (name, domain) in enumerate(case.op.inputs.items()):
        if _any_draw_fails(case, arrays, i, fails, admitted):
            anything.add(name)
        for simpler in _simpler(arrays[i]):
            if domain.kind == "offsets":
                break  # most of the simple arrays are no offsets
            if simpler.dtype.kind != "b":
                fitted = domain.fit(simpler) if domain.fit else simpler
                simpler = case.type.rounded(fitted, real=not np.iscomplexobj(simpler))
            zero = not (simpler.all() or may_vanish(domain))
            if zero or not may_hold(domain, simpler, arrays[i]):
                continue  # outside the domain, as a time step of 0, or outside `--where`
            if np.array_equal(simpler, arrays[i]):
                break  # those that follow are less simple
            attempt = admitted([*arrays[:i], simpler, *arrays[i + 1 :]])
            if attempt is None or all(map(np.array_equal, attempt, arrays)):
                continue
            if fails(attempt):
                arrays = attempt
                break
    return arrays, anything


def may_vanish(domain: Domain) -> bool:
    """True if the domain contains 0."""
    corner = np.zeros(1)
    zeros = (domain.draw(name, corner, corner, domain.real) == 0 for name in domain.maps)
    return not VANISHING.isdisjoint(domain.textures) or any(z.all() for z in zeros)


def _any_draw_fails(case, arrays, i, fails, admitted):
    for step in range(1, REDRAWS + 1):
        other = replace(case, seed=(case.seed + step * 7919) % 2**32).arrays[i]
        if other.shape != arrays[i].shape or np.array_equal(other, arrays[i]):
            return False
        attempt = admitted([*arrays[:i], other, *arrays[i + 1 :]])
        if attempt is None or not fails(attempt):
            return False
    return True


def _simpler(a):
    """Simpler arrays of the same shape and type, the simplest first."""
    yield np.zeros_like(a)
    yield np.ones_like(a)
    if a.size == 0:
        return
    for digits in (1, 2) if a.dtype.kind not in "bi" else ():
        constant = _few_digits(a.flat[0], digits)
        yield np.full_like(a, constant)
    largest = int(np.argmax(np.abs(a)))
    for place, number in ((0, 1), (0, a.flat[0]), (largest, a.flat[largest])):
        single = np.zeros_like(a)
        single.flat[place] = number
        yield single


def _few_digits(x, digits):
    """x rounded to so many significant digits, in each part."""
    if np.iscomplexobj(x):
        return complex(_few_digits(x.real, digits), _few_digits(x.imag, digits))
    return float(f"{float(x):.{digits - 1}e}")
