"""Scans with any associative operator, and the schedules by which kernels run them.

    y_k = x_0 • x_1 • … • x_k

The operator need not commute and needs no identity [blelloch1990prefix]. A schedule is a list of
steps. One step combines several pairs of places and leaves the other places unchanged:

    x_later ← x_earlier • x_later

First the schedules, then the scan, then operators to scan with.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from refssm._declaration.arguments import flag

Elements = Any  # an array or a tuple of arrays, time along axis 0 of each
Combine = Callable[[Elements, Elements], Elements]  # (earlier, later) -> elements


class ScheduleStep(NamedTuple):
    """The places that one step of a schedule combines; `earlier` and `later` have equal lengths."""

    name: str
    earlier: np.ndarray
    later: np.ndarray  # the results go here; each place at most once


class Level(NamedTuple):
    """All places after one step."""

    name: str
    elements: Elements  # a copy: later steps do not change it
    changed: np.ndarray  # the places that the step wrote


class Schedule:
    """Which places are combined when: `steps(l)` lists the steps of a scan of length `l`.

    `schedule(combine, elements)` runs the scan and yields its `Level`s. The first, "start", has the
    given elements; the last has the scan. Compare a kernel's intermediates with those between. To
    make your own schedule, decorate a function that yields `ScheduleStep`s:

    >>> import numpy as np
    >>> from refssm.associative import Schedule, ScheduleStep, associative_scan
    >>> @Schedule
    ... def serpent(l):
    ...     for k in range(1, l):
    ...         yield ScheduleStep(f"place {k}", np.array([k - 1]), np.array([k]))
    >>> associative_scan(np.add, [1, 2, 3, 4], serpent)
    array([ 1,  3,  6, 10])
    """

    def __init__(self, steps: Callable[[int], Iterator[ScheduleStep]]):
        self._steps = steps
        self.__name__, self.__doc__ = steps.__name__, steps.__doc__

    def __repr__(self):
        return self.__name__

    def steps(self, l: int) -> Iterator[ScheduleStep]:
        """The steps of a scan of length `l`."""
        if l < 0:
            raise ValueError(f"{self}: a length must be >= 0, got {l}")
        return self._steps(l)

    def __call__(self, combine: Combine, elements: Elements) -> Iterator[Level]:
        return self._levels(_State(self.__name__, combine, elements))

    def _levels(self, state: "_State") -> Iterator[Level]:
        yield Level("start", state.elements, np.arange(0))
        for step in self.steps(state.length):
            state.take(step)
            yield Level(step.name, state.elements, step.later)


@Schedule
def sequential(l):
    """y_k = y_{k-1} • x_k, one place after another: l - 1 steps, l - 1 combines."""
    for k in range(1, l):
        yield ScheduleStep(f"place {k}", np.array([k - 1]), np.array([k]))


@Schedule
def hillis_steele(l):
    """Every place combines with the place s before it, s = 1, 2, 4, …: ⌈log₂ l⌉ steps.

    After pass j place k has x_{k-2^j+1} • … • x_k (from x_0 if k is smaller). With d = ⌈log₂ l⌉
    passes there are d l - 2^d + 1 combines. A kernel that does this in place needs two buffers, or
    a barrier between reading and writing.
    """
    s, number = 1, 1
    while s < l:
        later = np.arange(s, l)
        yield ScheduleStep(f"pass {number} (step {s})", later - s, later)
        s, number = 2 * s, number + 1


@Schedule
def blelloch(l):
    """Up a tree of blocks of 2, 4, 8, … places, and down again [blelloch1990prefix, §1.2].

    After up j the last place of each whole block of 2^j places has the block's product. On the way
    down, the middle of a block combines with the end of the block before it. This is the inclusive
    form: it needs no identity, and handles lengths that are not powers of two without padding. With
    l places there are 2l - popcount(l) - bit_length(l) combines in ⌊log₂ l⌋ + ⌊log₂ (l/3)⌋ + 1
    steps (for l ≥ 3).
    """
    s, number = 1, 1
    while 2 * s <= l:
        later = np.arange(2 * s - 1, l, 2 * s)
        yield ScheduleStep(f"up {number} (step {s})", later - s, later)
        s, number = 2 * s, number + 1
    number = 1
    while s >= 1:
        later = np.arange(3 * s - 1, l, 2 * s)
        if later.size:
            yield ScheduleStep(f"down {number} (step {s})", later - s, later)
            number += 1
        s //= 2


def chunked(size: int) -> Schedule:
    """Schedule that scans chunks of `size` places separately, then carries from one to the next.

    Inside: all chunks at once, place after place. Total: scan the last places of the chunks, one
    after another. Carry: combine the other places of each chunk with the prefix before the chunk.
    With c = ⌈l/size⌉ chunks there are 2l - min(size, l) - c combines in at most size + c - 1 steps.

    Raises ValueError for a `size` below 1.
    """
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise ValueError(f"chunked: `size` must be an integer >= 1, got {size!r}")

    def steps(l):
        starts = np.arange(0, l, size)
        ends = np.minimum(starts + size, l) - 1
        for k in range(1, min(size, l)):
            later = starts + k
            later = later[later <= ends]
            yield ScheduleStep(f"inside {k}", later - 1, later)
        for c in range(1, len(ends)):
            yield ScheduleStep(f"total {c}", ends[[c - 1]], ends[[c]])
        later = np.setdiff1d(np.arange(size, l), ends)
        if later.size:
            yield ScheduleStep("carry", later // size * size - 1, later)

    steps.__name__ = f"chunked({size})"
    steps.__doc__ = f"Chunks of {size} from rest, their totals, and the carry into each chunk."
    return Schedule(steps)


def associative_scan(
    combine: Combine, elements: Elements, schedule: Schedule = sequential
) -> Elements:
    """y_k = x_0 • x_1 • … • x_k along axis 0, combined in the order of `schedule`.

    `elements` is an array or a tuple of arrays, with time along axis 0 of each; `combine` defines
    the other axes. `combine(earlier, later)` receives many places at once, equally many in both,
    and returns arrays of the same shapes. It must be associative. It is also called with zero
    places, to find the result types: `np.result_type` of elements and results. The result has the
    structure of `elements` and shares no memory with them. NaN and infinity propagate without
    warnings. Strings need ``dtype=object``. Raises ValueError for arrays of different lengths, and
    if `combine` returns another structure or shape; TypeError if `schedule` is not a Schedule.
    Source: [blelloch1990prefix, §1.4].

    >>> import numpy as np
    >>> from refssm.associative import associative_scan, blelloch
    >>> associative_scan(np.maximum, [3, 1, 4, 1, 5], blelloch)
    array([3, 3, 4, 4, 5])
    """
    if not isinstance(schedule, Schedule):
        wanted = "`schedule` must be a Schedule, as blelloch or chunked(64)"
        raise TypeError(f"associative_scan: {wanted}, got {schedule!r}")
    state = _State("associative_scan", combine, elements)
    for step in schedule.steps(state.length):
        state.take(step)
    return state.elements


def affine(earlier, later):
    """(a, b) • (a', b') = (a' a, a' b + b'): x ↦ a x + b, then x ↦ a' x + b', elementwise.

    The scan's second part is `linear_scan(a, b)`. Source: [blelloch1990prefix, §1.4].

    >>> import numpy as np
    >>> from refssm.associative import affine, associative_scan, hillis_steele
    >>> a, b = np.array([[0.5], [0.5], [0.5]]), np.array([[1.0], [0.0], [2.0]])
    >>> associative_scan(affine, (a, b), hillis_steele)[1].ravel()
    array([1.  , 0.5 , 2.25])
    """
    (a, b), (a_later, b_later) = earlier, later
    return a_later * a, a_later * b + b_later


def affine_dense(earlier, later):
    """(A, b) • (A', b') = (A' A, A' b + b') with matrices A (l,n,n) and vectors b (l,n).

    The scan's second part is x_k = A_k x_{k-1} + b_k from rest. Source: [blelloch1990prefix, §1.4].
    """
    (A, b), (A_later, b_later) = earlier, later
    return A_later @ A, (A_later @ b[..., None])[..., 0] + b_later


def segmented(combine: Combine) -> Combine:
    """An operator on `(resets, *elements)` that forgets the past at each reset.

        (r, x) • (r', x') = (r or r', x' where r' else x • x')

    Place k then combines the elements from the last reset on, k included. `resets` has the leading
    axes of every array of the elements, at least time. `combine` receives one array of elements as
    an array, several as a tuple. Selection removes the past: a product with 0 would keep its NaN.
    Sources: [blelloch1990prefix, §1.5; lu2023structured].

    >>> import numpy as np
    >>> from refssm.associative import associative_scan, blelloch, segmented
    >>> resets, x = np.array([1, 0, 0, 1, 0], bool), np.array([1.0, np.nan, 1.0, 2.0, 3.0])
    >>> associative_scan(segmented(np.add), (resets, x), blelloch)[1]
    array([ 1., nan, nan,  2.,  5.])
    """

    def from_the_reset(earlier, later):
        (reset, *past), (reset_later, *present) = earlier, later
        flag("segmented: `resets`", reset_later)
        if len(past) == 1:
            whole = (combine(past[0], present[0]),)
        else:
            whole = combine(tuple(past), tuple(present))
        selected = [
            np.where(_beside(reset_later, new), new, old_and_new)
            for new, old_and_new in zip(present, whole, strict=True)
        ]
        return np.logical_or(reset, reset_later), *selected

    return from_the_reset


def _beside(reset, part):
    """The resets, with axes of size 1 added at the end until they have as many axes as `part`."""
    if reset.shape != part.shape[: reset.ndim]:
        wanted = f"`resets` must have the leading axes of each part, {part.shape}"
        raise ValueError(f"segmented: {wanted}, got shape {reset.shape}")
    return reset.reshape(*reset.shape, *[1] * (part.ndim - reset.ndim))


class _State:
    """The places of a scan between its steps."""

    def __init__(self, name: str, combine: Combine, elements: Elements):
        self.name, self.combine, self.single = name, combine, not isinstance(elements, tuple)
        self.parts = [np.array(part) for part in ((elements,) if self.single else elements)]
        if not self.parts or any(part.ndim == 0 for part in self.parts):
            got = "a number" if self.parts else "()"
            raise ValueError(f"{name}: `elements` must be arrays with time along axis 0, got {got}")
        lengths = [len(part) for part in self.parts]
        if len(set(lengths)) > 1:
            raise ValueError(f"{name}: `elements` must have one length, got {lengths}")
        if any(part.dtype.kind in "SU" for part in self.parts):  # their width is fixed
            raise ValueError(f"{name}: `elements` must have dtype object for words, got strings")
        self.length = lengths[0]
        self._take_types()

    @property
    def elements(self) -> Elements:
        """A copy, with the structure of the given elements."""
        return self._together([part.copy() for part in self.parts])

    def take(self, step: ScheduleStep):
        """x_later ← x_earlier • x_later."""
        earlier, later = ([part[places] for part in self.parts] for places in step[1:])
        for part, combined in zip(self.parts, self._combined(earlier, later), strict=True):
            part[step.later] = combined

    def _take_types(self):
        """Widen the dtypes of the parts until `combine` no longer widens them."""
        while True:
            nothing = [part[:0] for part in self.parts]
            results = self._combined(nothing, nothing)
            types = list(map(np.result_type, nothing, results))
            if types == [part.dtype for part in self.parts]:
                return
            self.parts = [part.astype(t) for part, t in zip(self.parts, types, strict=True)]

    def _together(self, parts) -> Elements:
        return parts[0] if self.single else tuple(parts)

    def _combined(self, earlier, later) -> list[np.ndarray]:
        earlier, later = self._together(earlier), self._together(later)
        wanted = _form(later)
        try:
            with np.errstate(all="ignore"):
                result = self.combine(earlier, later)
        except (TypeError, ValueError) as error:
            came = f"`combine` refuses elements, {_form(self._together(self.parts))}: {error}"
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self.name}: {came}") from error
        if _form(result) != wanted:
            came = f"`combine` must return {wanted}, got {_form(result)}"
            raise ValueError(f"{self.name}: {came}")
        return [np.asarray(part) for part in ((result,) if self.single else result)]


def _form(elements: Elements) -> str:
    """The structure of elements in words: tuple, array with its shape, or type."""
    if isinstance(elements, tuple):
        return f"a tuple ({', '.join(map(_form, elements))})"
    if isinstance(elements, np.ndarray):
        return f"an array of shape {elements.shape}"
    return f"a {type(elements).__name__}"
