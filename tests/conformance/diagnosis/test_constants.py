"""Limits that a program sets to its arguments, and small numbers that it adds, are named."""

import numpy as np
import pytest
from judging import looks_like

from refssm import diagonal_kernel_zoh, linear_scan, selective_scan, vandermonde_kernel
from refssm.adapters import log_dt, neg_exp
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.checks.checks import types_of
from refssm.conformance.planted import planted_bugs
from refssm.conformance.planted.planting import Epsilon, in_words

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


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

    told = looks_like("diagonal_kernel_zoh", program, dtype="complex64")
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


def test_what_only_agrees_with_a_limit_in_one_case_is_not_told():
    def program(a, b):  # right above a = 0, where cutting b off from below changes nothing
        return linear_scan(np.where(a > 0, a, 2 * a), b)

    assert "kept at" not in looks_like("linear_scan", program)


def test_no_limit_is_tried_outside_of_the_range_that_was_asked_for():
    seen = []

    def program(u, dt, A, B, C):
        seen.append((float(dt.min(initial=1)), float(dt.max(initial=0.3))))
        return selective_scan(u, np.minimum(dt, dt.dtype.type(0.5)), A, B, C)

    told = looks_like("selective_scan", program, where=("dt=0.3..1",))
    assert told.startswith("`dt` kept at or below 0.5")
    low, high = np.array(seen).T
    assert low.min() >= 0.3 * (1 - 2.0**-8)
    assert high.max() <= 1 + 2.0**-8


def test_a_gradient_is_not_searched_for_limits():
    def vjp(dx, a, b):
        da, db = operator_named("linear_scan").bare_vjp(dx, a, b)
        return da, np.minimum(db, db.dtype.type(0.25))

    told = looks_like("linear_scan", linear_scan, "gradient", vjp=vjp)
    assert "kept at" not in told


EPSILONS = [bug for bug in planted_bugs() if isinstance(bug.wrong, Epsilon)]


@pytest.mark.parametrize("bug", EPSILONS, ids=str)
def test_a_planted_epsilon_is_in_its_description(bug):
    assert in_words(bug.wrong.number) in bug.what


@pytest.mark.parametrize("name", sorted({bug.op for bug in EPSILONS}))
@pytest.mark.parametrize(
    "spoilt",
    [
        lambda y: y[..., 1:],
        lambda y: (y, y),
        lambda y: np.where(np.arange(y.shape[-1]) == 0, np.nan, 3 * y),
    ],
    ids=["one entry missing", "one output too many", "NaN"],
)
def test_outputs_that_do_not_fit_are_described_and_no_small_number_is_seen(name, spoilt):
    reference = operator_named(name).reference
    dtype = "complex64" if "complex64" in types_of(operator_named(name)) else "float32"

    def program(*arrays, **statics):
        y = reference(*arrays, **statics)
        return tuple(map(spoilt, y)) if isinstance(y, tuple) else spoilt(y)

    assert "known bug" not in looks_like(name, program, dtype=dtype)


def added_to_differences(epsilon):
    def program(v, w, z):
        differences = z[..., :, None] - w[..., None, :]
        return (v[..., None, :] / (differences + z.real.dtype.type(epsilon))).sum(-1)

    return program


def added_to_poles(epsilon):
    def program(w, B, C, dt, *, l):
        z = dt[..., None] * w
        D = C * B * np.expm1(z) / (w + w.real.dtype.type(epsilon))
        return (D[..., None] * np.exp(z[..., None] * np.arange(l, dtype=z.real.dtype))).sum(-2)

    return program


@pytest.mark.parametrize("epsilon", [1e-3, 2.5e-5, 3e-6])
def test_a_small_number_in_a_denominator_is_named_whatever_it_is(epsilon):
    told = looks_like("cauchy_kernel", added_to_differences(epsilon), dtype="complex64")
    assert told.startswith(f"{in_words(epsilon)} added to the denominator: this known bug")
    told = looks_like("diagonal_kernel_zoh", added_to_poles(epsilon))
    assert told.startswith(f"{in_words(epsilon)} added to the denominator w: this known bug")


def test_a_small_number_is_named_in_a_form_whose_bugs_are_adapted():
    def program(w, C, dt, *, l):
        return added_to_poles(3e-6)(w, np.ones_like(C), C, dt, l=l)

    told = looks_like("dss_exp_kernel", program)
    assert told.startswith("3e-6 added to the denominator w: this known bug")


def test_a_small_number_in_a_square_is_named_behind_adapters():
    def program(w, C, dt, *, l):
        w = -np.exp(w.real) + 1j * w.imag
        z = np.exp(dt)[..., None] * w
        E = np.exp(z[..., None] * np.arange(l, dtype=z.real.dtype))
        x = np.expm1(l * z) * w
        weights = C * np.expm1(z) * x.conj() / (np.abs(x) ** 2 + np.float32(2e-5))
        return (weights[..., None] * E).sum(-2)

    adapters = log_dt(), neg_exp("w")
    told = looks_like("dss_softmax_kernel", program, dtype="complex64", adapters=adapters)
    assert told.startswith("x*/(|x|² + 2e-5) for 1/x: this known bug")


@pytest.mark.parametrize("change", [1.01, -1.0])
def test_another_mistake_is_no_small_number(change):
    def program(v, w, z):
        return change * (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)

    told = looks_like("cauchy_kernel", program, dtype="complex64")
    assert "added" not in told
    assert "|d|²" not in told


def test_a_small_number_beside_another_mistake_is_not_told_as_the_only_one():
    def program(v, w, z):
        return added_to_differences(1e-3)(v[..., ::-1], w, z)

    assert "added" not in looks_like("cauchy_kernel", program, dtype="complex64")
