"""What an implementation should return: the values, and how large its rounding errors may be.

Expected values by ball arithmetic, where the balls are far smaller than the errors to judge.

An enclosure (`refssm.enclosure`, which needs python-flint) computes in C and bounds its own error.
It needs about a fifth of the time that mpmath needs. The oracle in mpmath stays the definition: the
certificate of an operator comes from it, it decides wherever a ball is too large, and the tests
compare the two.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from types import MappingProxyType

import numpy as np

from refssm import oracle
from refssm._declaration.adapted import adapters_of
from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.gauges.contracts import (
    bounds,
    distance,
    exact_program,
    measurable_again,
)
from refssm.conformance.gauges.gauge import Gauge, Gauges, Measure, wide
from refssm.conformance.gauges.written import packed, unpacked
from refssm.conformance.judging.kept import KeptFile
from refssm.conformance.judging.stored import widened
from refssm.conformance.number_types import LONG_DOUBLE_IS_WIDER, judged_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

DERIVED = 48  # entries of an argument whose gradient the oracle derives
BITS = (192, 768)  # an oracle has 166; balls of thousands of steps grow, and need more
TIGHT = 1 / 1024  # the largest radius of a ball, in units of u·K0
# these enclosures add up all of the past at each time: l² operations, where the oracle needs l
OVER_THE_PAST = frozenset(
    {
        *("gated_units", "linear_attention", "linoss", "mamba3", "scan", "selective_scan"),
        *("ssd", "xlstm"),
    }
)
SHORT = 32  # up to so many steps they are faster all the same
# and these go step by step, where the oracle has all pairs of steps
STEP_BY_STEP = frozenset(
    {"chunk_outputs", "chunk_outputs_keyed", "chunk_states", "chunk_states_keyed"}
)
WORK = 2**15  # of an oracle: the product of core sizes; 128 by 256 states take seconds
# the first has no closed form: it sums until the rest is small; the other sums powers of a matrix
SLOWER = frozenset({"hope_kernel_aliased", "chunk_inverse"})


def enclosed_values(
    op: Operator, arrays, statics: Mapping, gauged: Gauges, unit: float
) -> tuple[np.ndarray, ...] | None:
    """The outputs in long double; None without python-flint, or if a ball is not tight."""
    # a ball is made of doubles, and lists of balls have no axis of length 0 but the first
    beyond = any(a.dtype.char in "gG" or a.size == 0 for a in arrays)
    length = op.sizes(*arrays, **statics).get("l", 1)
    if beyond or not _quick(op, length) or find_spec("flint") is None:
        return None
    from refssm.enclosure import middles

    for bits in BITS:
        found = [*zip(middles(op, arrays, statics, bits), gauged, strict=True)]
        tight = ((radius <= TIGHT * unit * gauge.k0.ravel()).all() for (_, radius), gauge in found)
        if all(tight):  # false if a radius is NaN
            return tuple(y.reshape(gauge.value.shape) for (y, _), gauge in found)
    return None


def _quick(op: Operator, length: int) -> bool:
    """True if the operator has an enclosure, and that is faster than the oracle."""
    few = op.name in STEP_BY_STEP or op.name.endswith("_step") or length <= SHORT
    past = op.family in OVER_THE_PAST and not few
    return "enclosure" not in op.lacks and not past and op.name not in SLOWER


NO_STATICS: Mapping = MappingProxyType({})
REMEMBERED = 160  # cases: as many as a quick run has
_memory: dict | None = None


def unit_roundoff(dtype) -> float:
    """u = eps/2 of a floating or complex type."""
    return float(np.finfo(dtype).eps) / 2


def expect(
    op: Operator,
    arrays,
    statics: Mapping = NO_STATICS,
    vjp: Callable | None = None,
    standard: Standard | None = None,
) -> tuple[Gauge, ...]:
    """What `op` (or its `vjp`, cotangents first) should return, with error bounds.

    The bounds are those of the operator's contract, from one run in double precision. If double
    precision itself is judged, the values come from the oracle. `standard` is the implementation's
    standard, by default that of the arrays' type.
    """
    standard = standard or Standard.of(judged_type(arrays))
    if _memory is None:
        return _with_state(op, arrays, statics, vjp, standard)
    key = key_of(op, arrays, statics, vjp, standard)
    if key not in _memory:
        _memory[key] = _with_state(op, arrays, statics, vjp, standard)
    return _memory[key]


def expect_of_oracle(op: Operator, arrays, statics: Mapping = NO_STATICS) -> tuple[Gauge, ...]:
    """As `expect`, with no values but those of the operator's own oracle: for its certificate."""
    return _expect(op, arrays, statics, None, Standard.of(judged_type(arrays)), _of_oracle)


def key_of(op: Operator, arrays, statics: Mapping, vjp, standard: Standard) -> Hashable:
    """A hashable key of all that determines the result of `expect`."""
    seen = b"".join(hash_of(a) for a in arrays)
    return op, vjp, tuple(sorted(statics.items())), seen, standard


def hash_of(a) -> bytes:
    """A 16-byte hash of an array's type, shape and entries."""
    text = f"{a.dtype.str}{a.shape}".encode()
    return blake2b(text + np.ascontiguousarray(a).tobytes(), digest_size=16).digest()


class _Recent(dict):
    """A dictionary that keeps only its last `REMEMBERED` entries."""

    def __setitem__(self, key, value):
        while len(self) >= REMEMBERED:
            del self[next(iter(self))]
        super().__setitem__(key, value)


@contextmanager
def remembering(memory: dict | None = None) -> Iterator[None]:
    """Context in which `expect` computes each case only once, for all implementations.

    For programs that judge several implementations on the same cases. A `memory` by `key_of` may
    already contain results, such as those of cases read from files. An inner context shares the
    memory of the outer one.
    """
    global _memory
    outer = _memory
    shared = _Recent() if outer is None else outer
    _memory = shared if memory is None else memory
    try:
        yield
    finally:
        _memory = outer


def _with_state(op, arrays, statics, vjp, standard: Standard) -> tuple[Gauge, ...]:
    """The gauges, with what the type of a stored state adds."""
    gauged = _expect(op, arrays, statics, vjp, standard)
    return widened(op, arrays, statics, gauged, standard, vjp=vjp is not None)


def _expect(op, arrays, statics, vjp, standard: Standard, small=None) -> tuple[Gauge, ...]:
    """The gauges; `small` computes the values of cases that are small enough for the oracle."""
    made_of = partial(_made_of, op, arrays, statics, vjp, standard)
    file = KeptFile(partial(made_of, "bounds"))
    stored = file.arrays()
    if stored is not None:
        gauged = unpacked(stored)
    else:
        gauged = _bounded(op, arrays, statics, vjp, standard)
        file.keep(partial(packed, gauged))
    gauged = measurable_again(op, arrays, statics, vjp, gauged)
    special = not all(np.isfinite(a).all() for a in (*arrays, *(g.value for g in gauged)))
    if standard.u > 2.0**-50 or special:  # no oracle where a value is not finite, as at a pole
        return gauged
    make = partial(
        _exact_values, op, vjp, arrays, statics, gauged, small or partial(_quickest, standard.u)
    )
    exact = make() if small else _kept_values(partial(made_of, "values"), make)
    return tuple(
        replace(g, value=y, measure=_remeasured(g, y)) for y, g in zip(exact, gauged, strict=True)
    )


def _bounded(op, arrays, statics, vjp, standard: Standard) -> tuple[Gauge, ...]:
    """The bounds, with the values of the reference in double precision."""
    with np.errstate(all="ignore"):
        y = (vjp or exact_program(op))(*wide(arrays), **statics)
    values = [a for a in several(y) if a is not None]
    largest = _largest([*arrays, *values])
    floor, copied = standard.floor * largest, standard.copied * largest
    gauged = bounds(op, arrays, statics, vjp, unit=standard.u, floor=floor, values=values)
    if standard.ftz:  # copies of inputs are flushed too
        gauged = tuple(replace(g, k0=g.k0 + copied, k1=g.k1 + copied) for g in gauged)
    return gauged


def _made_of(op, arrays, statics, vjp, standard: Standard, what: str) -> bytes:
    """The bytes of all that decides `what` is expected, beside refssm itself."""
    # with `ftz`, the bound of a flushed copy depends on the allowed ratio
    types = standard.type.name, standard.computes.name, standard.ftz and standard.room
    name = op.name, *map(str, adapters_of(op))
    told = repr((what, *name, vjp is not None, sorted(statics.items()), types))
    return b"".join([told.encode(), *(hash_of(a) for a in arrays)])


def _kept_values(made_of: Callable[[], bytes], make: Callable) -> tuple[np.ndarray, ...]:
    """The values that `make` computes, or those of an earlier run."""
    file = KeptFile(made_of)
    stored = file.arrays()
    if stored is not None:
        return tuple(stored.values())
    values = make()
    file.keep(lambda: {str(j): y for j, y in enumerate(values)})
    return values


def _remeasured(gauge: Gauge, exact) -> Measure | None:
    """The measure with distances from the exact value; residuals do not depend on it."""
    if gauge.measure is None or gauge.measure.name == "residual":
        return gauge.measure
    return replace(gauge.measure, of=distance(exact))


def _largest(numbers) -> float:
    """Largest modulus of inputs and outputs, at least 1: an underflow may be multiplied by it.

    An associative scan multiplies decays before the state: a product that underflows by u·ν then
    has an error of u·ν times the state. A sequential scan only has u·ν.
    """
    sizes = [np.abs(a) for a in numbers if a.dtype.kind not in "bi"]
    return max(1.0, *(float(s.max(initial=0, where=np.isfinite(s))) for s in sizes))


def _of_oracle(op, arrays, statics, gauged):
    del gauged
    try:
        return oracle.evaluate(op, *arrays, **statics)
    except ValueError as error:  # arguments of --inputs for which the formula has no value
        raise UsageError(f"{op}: {error}") from error


def _quickest(unit, op, arrays, statics, gauged):
    """The values of the enclosure if its balls are tight, else those of an oracle."""
    op = _defined_as(op)
    enclosed = enclosed_values(op, arrays, statics, gauged, unit)
    return enclosed or _of_oracle(op, arrays, statics, gauged)


def _defined_as(op: Operator) -> Operator:
    """The operator whose reference defines this one, if there is one: the same function.

    Its oracle may need fewer operations: the attention form of SSD is quadratic in the length, the
    recurrence is not.
    """
    return next((o for o in OPERATORS if o.reference is op.definition), op)


def _derived(op, arrays, statics, gradients):
    """The derivative of the oracle; of a larger case our gradients in double precision."""
    if max(a.size for a in arrays) > DERIVED:
        return gradients
    number = len(op.outputs)
    return oracle.gradient(op, arrays[:number], arrays[number:], **statics)


def _exact_values(op, vjp, arrays, statics, gauged, small):
    """Values to judge double precision by: those of `small`, or long double's if large."""
    outputs = [g.value for g in gauged]
    if vjp is not None and not op.contract.judges_gradients_in_double:
        return _derived(op, arrays, statics, outputs)
    largest = max(a.size for a in (*arrays, *outputs))
    closed = op.constructor and op.contract.follows_each_operation
    work = math.prod(op.sizes(*arrays, **statics).values()) if vjp is None and not closed else 0
    few = largest <= op.contract.oracle_entries and (work <= WORK or not LONG_DOUBLE_IS_WIDER)
    if vjp is None and (few or closed):
        return small(op, arrays, statics, gauged)
    if op.contract.needs_no_value or op.contract.solved_by_lapack:
        return outputs
    if not LONG_DOUBLE_IS_WIDER:
        raise UsageError(
            f"{op}: {largest} numbers are too many for the oracle, and long double is no wider than"
            " double here: choose --dtype float32 or complex64, or smaller arrays"
        )
    direct = op.definition if "transform" in op.traits else None
    program = vjp or direct or exact_program(op)
    with np.errstate(all="ignore"):
        y = program(*wide(arrays, np.longdouble), **statics)
    return tuple(a for a in several(y) if a is not None)
