"""What an implementation should return: the values, and how large its rounding errors may be."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from types import MappingProxyType

import numpy as np

from refssm import oracle
from refssm._arguments import several
from refssm._operator import Operator
from refssm.conformance.gauges.contracts import bounds, distance
from refssm.conformance.gauges.gauge import Gauge, Measure, wide
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

NO_STATICS: Mapping = MappingProxyType({})
REMEMBERED = 160  # cases: as many as a quick run has
_memory: dict | None = None


def unit_roundoff(dtype) -> float:
    """u = eps/2 of a floating or complex type."""
    return float(np.finfo(dtype).eps) / 2


def judged_type(arrays) -> np.dtype:
    """The type in which to compute and answer; double precision if there are no arrays."""
    return np.result_type(*arrays) if arrays else np.dtype(np.float64)


def expect(
    op: Operator,
    arrays,
    statics: Mapping = NO_STATICS,
    vjp: Callable | None = None,
    held: Standard | None = None,
) -> tuple[Gauge, ...]:
    """What `op` (or its `vjp`, cotangents first) should return, with error bounds.

    The bounds are those of the operator's contract, from one run in double precision. If double
    precision itself is judged, the values come from the oracle. `held` is the implementation's
    standard, by default that of the arrays' type.
    """
    held = held or Standard.of(judged_type(arrays))
    if _memory is None:
        return _expect(op, arrays, statics, vjp, held)
    key = key_of(op, arrays, statics, vjp, held)
    if key not in _memory:
        _memory[key] = _expect(op, arrays, statics, vjp, held)
    return _memory[key]


def key_of(op: Operator, arrays, statics: Mapping, vjp, held: Standard) -> Hashable:
    """A hashable key of all that determines the result of `expect`."""
    seen = b"".join(hash_of(a) for a in arrays)
    return op, vjp, tuple(sorted(statics.items())), seen, held


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
    already contain results, such as those of cases read from files.
    """
    global _memory
    outer, _memory = _memory, _Recent() if memory is None else memory
    try:
        yield
    finally:
        _memory = outer


def _expect(op, arrays, statics, vjp, held: Standard) -> tuple[Gauge, ...]:
    unit = held.u
    floor = held.floor * _largest(vjp or op.reference, arrays, statics)
    gauged = bounds(op, arrays, statics, vjp, unit=unit, floor=floor)
    if held.ftz:  # copies of inputs are flushed too
        gauged = tuple(replace(g, k0=g.k0 + floor, k1=g.k1 + floor) for g in gauged)
    special = not all(np.isfinite(a).all() for a in (*arrays, *(g.value for g in gauged)))
    if unit > 2.0**-50 or special:  # no oracle where a value is not finite, as at a pole
        return gauged
    exact = _exact_values(op, vjp, arrays, statics, gauged)
    return tuple(
        replace(g, value=y, measure=_remeasured(g, y)) for y, g in zip(exact, gauged, strict=True)
    )


def _remeasured(gauge: Gauge, exact) -> Measure | None:
    """The measure with distances from the exact value; residuals do not depend on it."""
    if gauge.measure is None or gauge.measure.name == "residual":
        return gauge.measure
    return replace(gauge.measure, of=distance(exact))


def _largest(program, arrays, statics) -> float:
    """Largest modulus of inputs and outputs, at least 1: an underflow may be multiplied by it.

    An associative scan multiplies decays before the state: a product that underflows by u·ν then
    has an error of u·ν times the state. A sequential scan only has u·ν.
    """
    with np.errstate(all="ignore"):
        y = program(*wide(arrays), **statics)
    sizes = [np.abs(a) for a in (*arrays, *several(y)) if a is not None and a.dtype.kind != "b"]
    return max(1.0, *(float(s.max(initial=0, where=np.isfinite(s))) for s in sizes))


def _exact_values(op, vjp, arrays, statics, gauged):
    """Values to judge double precision by: the oracle's, or long double's if large."""
    outputs = [g.value for g in gauged]
    largest = max(a.size for a in (*arrays, *outputs))
    closed = op.constructor and op.contract.follows_each_operation
    if vjp is None and (largest <= op.contract.oracle_entries or closed):
        return oracle.evaluate(op, *arrays, **statics)
    if op.contract.needs_no_value or op.contract.solved_by_lapack:
        return outputs
    if np.finfo(np.longdouble).eps > np.finfo(np.float64).eps / 1000:
        raise UsageError(
            f"{op}: {largest} numbers are too many for the oracle, and long double is no wider than"
            " double here: choose --dtype float32 or complex64, or smaller arrays"
        )
    direct = op.definition if "transform" in op.traits else None
    program = vjp or direct or op.reference
    with np.errstate(all="ignore"):
        y = program(*wide(arrays, np.longdouble), **statics)
    return tuple(a for a in several(y) if a is not None)
