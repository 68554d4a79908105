"""Limits that a program sets to its arguments are named with their numbers."""

import warnings

import numpy as np
import pytest

from refssm import diagonal_kernel_zoh, linear_scan, selective_scan, vandermonde_kernel
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.worker import InProcess
from refssm.conformance.judging.expected import remembering
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings


@pytest.fixture(autouse=True)
def _their_warnings_are_not_ours():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def looks_like(name, function, dtype="float32"):
    """What the report says of a program that fails the check `value`."""
    found = Found(operator_named(name), function, None)
    how = {"only_checks": ("value",), "types": (dtype,), "shrink": False, "folder": None}
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "", Settings(diagnose=True, **how)))
    assert line.failed, line
    return line.looks_like


@pytest.mark.parametrize("limit", [0.37, 0.02])
def test_a_largest_step_is_named_with_its_number(limit):
    def program(u, dt, A, B, C):
        return selective_scan(u, np.minimum(dt, dt.dtype.type(limit)), A, B, C)

    told = looks_like("selective_scan", program)
    assert told.startswith(f"`dt` kept at or below {limit:.4g}: so changed, the reference gives")


def test_a_smallest_decay_of_a_real_part_is_named_with_its_number():
    def program(w, B, C, dt, *, l):
        kept = np.minimum(w.real, -np.float32(0.013)) + 1j * w.imag
        return diagonal_kernel_zoh(kept.astype(w.dtype), B, C, dt, l=l)

    told = looks_like("diagonal_kernel_zoh", program, "complex64")
    assert told.startswith("the real part of `w` kept at or below -0.013: so changed")


def test_a_limit_from_below_is_named():
    def program(a, b):
        return linear_scan(np.maximum(a, a.dtype.type(-0.25)), b)

    assert looks_like("linear_scan", program).startswith("`a` kept at or above -0.25")


def test_a_limit_beside_another_mistake_is_not_told_as_the_only_one():
    def program(u, dt, A, B, C):
        return 1.01 * selective_scan(u, np.minimum(dt, dt.dtype.type(0.37)), A, B, C)

    assert "kept at" not in looks_like("selective_scan", program)


def test_numbers_too_large_to_matter_are_no_limit():
    def program(v, x, *, l):  # e^x is 0 for x below −104 in any program
        return 1.5 * vandermonde_kernel(v, x, l=l)

    assert "kept at" not in looks_like("vandermonde_kernel", program)
