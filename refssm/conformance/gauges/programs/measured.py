"""Bounds that are measured: the errors of our own programs in single precision, on the same case.

Where a derived bound is far above the errors of every good program, a bad program can hide in it.
For one member of a batch, K0 is the largest of

- the errors of the operator's programs (`gauges.programs`) in single precision, on its inputs and
  on three copies of them in which each number is moved by one rounding up or down, each against
  the reference at its own inputs: one lucky cancellation decides nothing;
- the change of the result between these copies: the effect of one rounding of the inputs;
- log2(2l) root mean squares: the roundings of a transform, or of a sum along the longest axis l,

in units of u, rounded up to a power of two, so that machines agree. It holds in every precision.
A result beyond it is measured again on many more copies, and with operations that round at random:
where an error depends on the rounding of one number, a few may all be lucky. Outputs are also
summed in order: NumPy's sums hide what a loop over equal terms errs by. The derived bound is
made only where that fails, too.

Copies of a case move a number that a program computes by less than a rounding of it, where that is
near 1, as ρ = (1 − dt)/(1 + dt): its nearest rounding is the same on all of them, and may happen to
be exact. In arrays that round at random [vignes2004], each rounded number of each operation is one
of its two neighbours. Exact results stay.

NumPy adds in pairs, so that an error grows with the logarithm of the number of terms. A loop that
adds n equal terms rounds to the same side again and again, and may err by n/2 roundings.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from refssm._declaration.arguments import several
from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.gauges.gauge import Gauge, Gauges, KnownBound, TrackedCall, wide
from refssm.conformance.gauges.programs.arithmetic import moved, neighbour, seed_of

SINGLES = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


class Stochastic(np.ndarray):
    """An array of single precision: ufuncs work in double precision and round at random.

    A sum is rounded once, at its end. What is no ufunc (products by `einsum`, transforms, cumulated
    sums) rounds as usual, and returns such an array again.
    """

    rng: np.random.Generator

    def __array_finalize__(self, other):
        if isinstance(other, Stochastic):
            self.rng = other.rng

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        given = [_plain(x) for x in inputs]
        if out is not None:
            keywords["out"] = tuple(map(_plain, out))
        rounded = getattr(ufunc, method)(*given, **keywords)
        if method == "at" or isinstance(rounded, tuple) or rounded.dtype not in SINGLES:
            return rounded
        keywords.pop("out", None)
        wide = getattr(ufunc, method)(*map(_wide, given), **keywords)
        result = neighbour(np.asarray(wide), rounded.dtype, self.rng)
        if out is None:
            return stochastic(result, self.rng)
        out[0][...] = result
        return out[0]

    def __array_function__(self, function, types, arguments, keywords):
        found = super().__array_function__(function, types, arguments, keywords)
        if isinstance(found, np.ndarray) and found.dtype in SINGLES:
            return stochastic(found, self.rng)
        return found


class InOrder(np.ndarray):
    """An array of single precision: sums and products of matrices add one term after the other."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **keywords):
        given = [_plain(x) for x in inputs]
        if ufunc is np.add and method == "reduce" and _of_all(keywords):
            result = _sum_in_order(given[0], keywords.get("axis", 0), keywords.get("keepdims"))
        elif ufunc is np.matmul and not keywords and min(a.ndim for a in given) > 1:
            result = _product_in_order("...ij,...jk->...ik", *given)
        else:
            if out is not None:
                keywords["out"] = tuple(map(_plain, out))
            result = getattr(ufunc, method)(*given, **keywords)
            if out is not None:
                return out[0] if len(out) == 1 else out
            return in_order(result) if isinstance(result, np.ndarray) else result
        if out is None:
            return in_order(result)
        out[0][...] = result
        return out[0]

    def __array_function__(self, function, types, arguments, keywords):
        if function is np.einsum and len(arguments) == 3 and not keywords:
            formula, *factors = arguments
            return in_order(_product_in_order(formula, *map(_plain, factors)))
        found = super().__array_function__(function, types, arguments, keywords)
        return in_order(found) if isinstance(found, np.ndarray) else found


def _of_all(keywords: Mapping) -> bool:
    """True for a sum of all terms in the type of the array, from 0 on."""
    usual = keywords.get("dtype") is None and keywords.get("where", True) is True
    return usual and "initial" not in keywords


def _sum_in_order(a: np.ndarray, axis, keepdims) -> np.ndarray:
    """The sum along one axis or several, term by term."""
    axes = tuple(range(a.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(sorted(k % a.ndim for k in axes))
    kept = [n for k, n in enumerate(a.shape) if k not in axes]
    number = prod(a.shape[k] for k in axes)  # not −1: another axis may have no entries
    terms = np.moveaxis(a, axes, range(-len(axes), 0)).reshape(*kept, number)
    total = np.add.accumulate(terms, -1)[..., -1] if terms.shape[-1] else terms.sum(-1)
    return np.expand_dims(total, axes) if keepdims else total


def _product_in_order(formula: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`np.einsum` of two factors; its one axis that both have and the result lacks in order."""
    given, result = formula.split("->")
    left, right = given.split(",")
    summed = [k for k in left if k in right and k not in result]
    if len(summed) != 1 or not (a.size and b.size):
        return np.einsum(formula, a, b)
    k = summed[0]
    a, b = np.moveaxis(a, _axis(left, k), 0), np.moveaxis(b, _axis(right, k), 0)
    one = formula.replace(k, "")
    total = np.einsum(one, a[0], b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + np.einsum(one, x, y)
    return total


def _axis(labels: str, label: str) -> int:
    """The place of a label, from the end: an ellipsis before it has any number of axes."""
    return labels.index(label) - len(labels)


def in_order(a: np.ndarray) -> np.ndarray:
    """The array as one that sums in order; as it is, if it is not of single precision."""
    return a.view(InOrder) if a.dtype in SINGLES else a


def stochastic(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The array as one that rounds at random; as it is, if it is not of single precision."""
    if a.dtype not in SINGLES:
        return a
    own = a.view(Stochastic)
    assert isinstance(own, Stochastic)
    own.rng = rng
    return own


def _plain(x):
    return x.view(np.ndarray) if isinstance(x, Stochastic | InOrder) else x


def _wide(x):
    """An array of single precision in double precision; Python's numbers have no precision."""
    return x.astype(SINGLES[x.dtype]) if getattr(x, "dtype", None) in SINGLES else x


COPIES = 3
# times the measured bound: up to there the derived one of a gradient holds. Gradients add over time
# and batch, in any order; three sums of ours do not show a loop over equal small terms
LOOSE = 4
AGAIN = 12  # sets of copies before a result is refused
AT_RANDOM = 2  # of them with operations that round at random: each takes up to nine times as long
# and, of outputs, with sums in order; no gradient of the soak needed them beside `LOOSE`
IN_ORDER = 1
SINGLE = 2.0**-24
SMALLEST = 2.0**-100  # slices below it may underflow in single precision

Program = Callable[..., Any]  # arrays and sizes to an output, or a tuple; None: not this case


def measured(
    call: TrackedCall,
    exact: Program,
    programs: Mapping[str, Program],
    derive: Callable[[], Gauges],
    *,
    entries: bool,
    values: Sequence[np.ndarray] | None = None,
) -> Gauges:
    """One gauge for each result of `exact`, from the errors of `programs`.

    `values` are these results in double precision, computed here if they are not known.

    `derive` makes the derived gauges. They are also used where a program overflows in single
    precision, or where single precision cannot hold the case. With `entries` they have a bound for
    each entry: of outputs the smaller bound holds, of gradients see `LOOSE`.
    """
    if not all(a.size for a in call.arrays):
        return derive()
    with np.errstate(all="ignore"):  # a number of double precision may overflow in single
        copies, found = _on_copies(call, programs, 0)
    if not found:
        return derive()
    with np.errstate(all="ignore"):
        if values is None:
            values = _results(exact, wide(call.arrays), call.statics)
        told = _compared(call, exact, copies, found, values)
    if any(k is None for k in told):
        return derive()
    lazily = _Once(derive)
    peak = max(_largest(a) for a in (*call.arrays, *values))
    gauges = []
    for j, (y, k) in enumerate(zip(values, told, strict=True)):
        assert k is not None
        k0 = np.maximum(np.broadcast_to(k, y.shape), np.maximum(np.abs(y), call.floor))
        if entries:
            gauges.append(_smaller(lazily()[j], k0, LOOSE if _of_gradients(call) else 1))
        else:
            gauge = Gauge(y, k0, k0, peak, normwise=True, derive=_Beyond(lazily, j))
            gauges.append(_where_programs_err(gauge, np.broadcast_to(np.isinf(k), y.shape)))
    return tuple(gauges)


def _where_programs_err(gauge: Gauge, nowhere: np.ndarray) -> Gauge:
    """The measured gauge, if there are slices in which no program errs with the derived one.

    There the derived bounds hold, and in the other slices of such a result the larger ones.
    """
    if not nowhere.any():
        return gauge
    assert isinstance(gauge.derive, _Beyond)
    known = gauge.derive.gauge
    k0, k1 = (np.where(nowhere, k, np.maximum(k, gauge.k0)) for k in (known.k0, known.k1))
    return replace(gauge, k0=k0, k1=k1)


def measured_again(
    call: TrackedCall, exact: Program, programs: Mapping[str, Program], gauges: Gauges
) -> list[np.ndarray]:
    """K0 of measured gauges from many more copies; where k1 is known, at most that."""
    values, k0 = [g.value for g in gauges], [g.k0 for g in gauges]
    for part in range(1, AGAIN):
        with np.errstate(all="ignore"):
            copies, found = _on_copies(call, programs, part)
            told = _compared(call, exact, copies, found, values)
        for j, k in enumerate(told):
            if k is not None:
                k0[j] = np.maximum(k0[j], np.where(np.isfinite(k), k, 0))
    most = [np.inf if g.derived_k1 is None else g.derived_k1 for g in gauges]
    return [np.maximum(g.k0, np.minimum(k, m)) for g, k, m in zip(gauges, k0, most, strict=True)]


def _on_copies(call: TrackedCall, programs, part: int):
    """One set of copies, and the results of each program that takes them."""
    copies = _copies(call.arrays, _cores(call), part)
    given = _full(copies, _cores(call))
    if 0 < part <= AT_RANDOM:
        rng = np.random.default_rng([seed_of(*copies), part])
        given = [stochastic(a, rng) for a in given]
    elif AT_RANDOM < part <= AT_RANDOM + IN_ORDER and not _of_gradients(call):
        given = [in_order(a) for a in given]
    return copies, _of_programs(programs, given, call.statics)


def _compared(call: TrackedCall, exact, copies, found, values) -> list[np.ndarray | None]:
    """K0 of each result by one set of copies, or None for each."""
    wanted = _results(exact, wide(copies), call.statics)
    found = [[_fitted(y, w) for y, w in zip(of, wanted, strict=True)] for of in found]
    # axes of size 1 that the copies have for broadcasting go again
    wanted = [w.reshape(len(w), *y.shape) for w, y in zip(wanted, values, strict=True)]
    found = [[y.reshape(w.shape) for y, w in zip(of, wanted, strict=True)] for of in found]
    ranks = [y.ndim - batch for y, batch in zip(values, _batch_ranks(call, values), strict=True)]
    if _is_another_case(wanted, values, ranks):
        return [None] * len(values)
    longest = max(n for axes in _core_shapes(call) for n in (1, *axes))
    slices = _slices(call, ranks)
    return [
        _units([results[j] for results in found], wanted[j], y, slices[j], longest)
        for j, y in enumerate(values)
    ]


def _slices(call: TrackedCall, ranks) -> list[tuple[int, ...]]:
    """The axes of each result that share a bound: its core axes, without that of columns."""
    column = call.op.output_dims[0][-1:] if call.op.contract.measures_columns else None
    ends = [-1 if column and dims[-1:] == column else 0 for dims in _result_dims(call)]
    return [tuple(range(-rank, end)) for rank, end in zip(ranks, ends, strict=True)]


def _result_dims(call: TrackedCall) -> list[tuple[str, ...]]:
    """The core dimensions of each result: of an output, or of a gradient as its argument."""
    op = call.op
    if not _of_gradients(call):
        return [*op.output_dims]
    named = zip(op.inputs, op.input_dims, strict=True)
    return [dims for name, dims in named if name not in op.discrete]


def _smaller(derived: Gauge, k0: np.ndarray, most: float) -> Gauge:
    """The derived gauge, with the measured bound where its own is over `most` times larger."""
    with np.errstate(invalid="ignore"):  # no measured bound
        loose = np.isfinite(derived.k0) & (derived.k0 > most * k0)
    k0 = np.where(loose, k0, derived.k0)
    return replace(derived, k0=k0, k1=k0, derive=KnownBound(derived.k1))


@dataclass
class _Once:
    """The derived gauges, made at the first use."""

    derive: Callable[[], Gauges]
    made: Gauges | None = None

    def __call__(self) -> Gauges:
        if self.made is None:
            self.made = self.derive()
        return self.made


@dataclass(frozen=True)
class _Beyond:
    """K1 of one output, from the derived gauges."""

    gauges: _Once
    output: int

    def __call__(self) -> np.ndarray:
        return self.gauge.k1

    @property
    def gauge(self) -> Gauge:
        """The derived gauge."""
        return self.gauges()[self.output]


def _is_another_case(wanted, values, ranks) -> bool:
    """True if its roundings to single precision make of a member of the batch another case.

    They change each of its results by half of it, as beside a pole. Where they change one result so
    much and another less, the first cancels.
    """
    members = []
    for on_copies, y, rank in zip(wanted, values, ranks, strict=True):
        if y.size:
            axes = tuple(range(-rank, 0))
            change = np.abs(on_copies - y).max(axes).max(0)
            members.append(change > np.abs(y).max(axes) / 2)
    return bool(np.logical_and.reduce(np.broadcast_arrays(*members)).any()) if members else True


def _units(found: list[np.ndarray], wanted, value, axes, longest) -> np.ndarray | None:
    """K0 of each slice, as a power of two; None if single precision cannot tell."""
    if value.size == 0:
        return np.zeros(value.shape)
    largest = np.abs(value).max(axes, keepdims=True)
    fits = ((largest == 0) | (largest > SMALLEST)) & np.isfinite(largest)
    if not (fits.all() and np.isfinite(wanted).all()):
        return None
    if not all(np.isfinite(y).all() for y in found):
        return None
    errors = [np.abs(y - wanted).max(axes, keepdims=True).max(0) for y in found]
    moved = np.abs(wanted[1:] - wanted[:1]).max(axes, keepdims=True).max(0)
    spread = np.log2(2 * longest) * np.sqrt((np.abs(value) ** 2).mean(axes, keepdims=True))
    k0 = np.maximum.reduce([spread, *(e / SINGLE for e in (*errors, moved))]).astype(float)
    k0 = np.exp2(np.ceil(np.log2(np.maximum(k0, np.finfo(float).tiny))))
    # programs that never err say nothing about others: one that rounds once more is right; nor do
    # errors that single precision cannot hold, where the slice is 0 and what it is made of small
    return np.where(np.maximum.reduce([*errors, moved]) > SMALLEST * SINGLE, k0, np.inf)


def _of_gradients(call: TrackedCall) -> bool:
    """True if a VJP is called: its arguments begin with cotangents."""
    return len(call.arrays) > len(call.op.inputs)


def _batch_ranks(call: TrackedCall, values) -> list[int]:
    """The number of batch axes of each result: of an output, or of a gradient as its argument."""
    return [y.ndim - len(dims) for y, dims in zip(values, _result_dims(call), strict=True)]


def _of_programs(programs: Mapping[str, Program], copies, statics) -> list[list[np.ndarray]]:
    """The results of every program that takes the case; None is the answer of one that does not."""
    made = (program(*copies, **statics) for program in programs.values())
    results = (several(found) for found in made if found is not None)
    return [[np.asarray(y) for y in found if y is not None] for found in results]


def _results(program: Program, arrays, statics) -> list[np.ndarray]:
    """The results as a list; a VJP returns None for an argument without a gradient."""
    return [y for y in several(program(*arrays, **statics)) if y is not None]


def _fitted(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """A gradient summed over the axes along which its argument broadcasts, real if that is."""
    return unbroadcast(found, wanted)


def _core_shapes(call: TrackedCall) -> list[tuple[int, ...]]:
    """The core axes of each array."""
    pairs = zip(call.arrays, _cores(call), strict=True)
    return [a.shape[a.ndim - core :] for a, core in pairs]


def _cores(call: TrackedCall) -> list[int]:
    """The number of core axes of each array; those of a VJP begin with the cotangents."""
    cores = [len(dims) for dims in call.op.input_dims]
    before = len(call.arrays) - len(cores)
    return [len(dims) for dims in call.op.output_dims[:before]] + cores


def _copies(arrays, cores, part: int = 0) -> list[np.ndarray]:
    """Each array in single precision and its moved copies, on a new first axis; others by `part`.

    An array with fewer axes than the others gets axes of size 1 behind the new one, so that its
    leading axes still broadcast; core axes stay last.
    """
    single = [_single(a) for a in arrays]
    ranks = [a.ndim - core for a, core in zip(single, cores, strict=True)]
    padded = [(1,) * (max(ranks) - rank) for rank in ranks]
    single = [a.reshape(more + a.shape) for a, more in zip(single, padded, strict=True)]
    seed = seed_of(*single)
    rng = np.random.default_rng([seed, part] if part else seed)
    return [np.stack([a, *(moved(a, rng) for _ in range(COPIES))]) for a in single]


def _full(arrays, cores) -> list[np.ndarray]:
    """Each array with all leading axes: so programs need no rule of broadcasting."""
    ranks = [a.ndim - core for a, core in zip(arrays, cores, strict=True)]
    shapes = [a.shape[:rank] for a, rank in zip(arrays, ranks, strict=True)]
    batch = np.broadcast_shapes(*shapes)
    told = zip(arrays, ranks, strict=True)
    return [np.broadcast_to(a, batch + a.shape[rank:]) for a, rank in told]


def _single(a: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "bi":
        return a
    return np.ascontiguousarray(a, np.complex64 if np.iscomplexobj(a) else np.float32).reshape(
        a.shape
    )


def _largest(a: np.ndarray) -> float:
    """The largest finite modulus."""
    if a.dtype.kind in "bi":
        return 1.0
    size = np.abs(a)
    return float(size.max(initial=0.0, where=np.isfinite(size)))
