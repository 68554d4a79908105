"""Helpers for tests of several frameworks: one check of one function, unusual numbers."""

import numpy as np

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess, call
from refssm.conformance.cases.ranges import Where
from refssm.conformance.number_types import number_type
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration

SHAPES = ((), (0,), (2, 0, 3), (1,), (2, 3), (2, 1, 3))


def found(name, function, hand=None, **declared):
    """A function as an implementation of the operator `name`; `hand` is its own VJP."""
    return Found(operator_named(name), function, hand, declared=Declaration(name, **declared))


def judged(name, function, check, *, dtype="float32", hand=None, sizes=None, **declared):
    """The result of one check in one type, in this process; `sizes` bounds sizes by letter."""
    worker = InProcess([found(name, function, hand, **declared)])
    settings = {"profile": "quick", "types": (dtype,), "only_checks": (check,), "folder": None}
    *_, result = results_of(
        Session(worker, "here", Settings(where=Where(sizes=sizes or {}), **settings))
    )
    return result


def called(function, arrays, *, framework, **how):
    """The result of one call of a linear scan."""
    return call(found("linear_scan", function, framework=framework), arrays, {}, **how)


def ordinary(kind, shape):
    """Distinct numbers of a type; first a signed zero, NaN, infinities, a subnormal."""
    kind, size = number_type(kind), int(np.prod(shape))
    first = [-0.0, np.nan, np.inf, -np.inf, kind.tiny / 4, -kind.max, 1 + 2 * kind.u, 0.0]
    numbers = np.array([*first, *(2 + np.arange(size) / 8)])[:size]
    a = np.zeros(size, kind.carrier)
    a.real = numbers
    if kind.carrier.kind == "c":
        a.imag = numbers[::-1]
    return a.reshape(shape)


def identical(x, y):
    """True if shape, type, all numbers and all signs are equal; NaN equals NaN."""
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return False
    parts = [(x.real, y.real), (x.imag, y.imag)]
    return all(np.array_equal(p, q, equal_nan=True) and signs(p) == signs(q) for p, q in parts)


def signs(x):
    return [bool(s) for s in np.signbit(x[~np.isnan(x)])]
