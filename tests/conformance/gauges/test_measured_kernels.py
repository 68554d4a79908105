"""Measured bounds of the operators beside `dplr_kernel`: what can no longer hide in a bound."""

from dataclasses import replace

import numpy as np
import pytest
from honest.dplr.vjp import through_the_spectrum_vjp
from selftest.bounds import case_of, cotangents

from refssm._declaration.adapted import adapted
from refssm._declaration.arguments import several
from refssm.adapters import halves, log_dt, neg_exp
from refssm.conformance import standard
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.contracts import (
    BOUNDS,
    bounds,
    gradient_programs,
    output_programs,
)
from refssm.conformance.gauges.gauge import KnownBound, TrackedCall, gauges
from refssm.conformance.gauges.programs import GRADIENTS, OUTPUTS
from refssm.conformance.gauges.programs import measured as measuring
from refssm.conformance.gauges.programs.pieces import in_pieces, interleaved
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import grade_outputs
from refssm.conformance.standard import Standard
from refssm.presets.catalog import presets_of

U = 2.0**-24


def smallest_case(name):
    op = operator_named(name)
    case = case_of(op, presets_of(op)[0])
    assert case is not None
    return op, case


def smallest_gradients(name):
    """The first case in which no gradient is 0, as those of a step from a state of zeros are.

    Not angles of many turns: of sums that keep all turns an error of 2 % is right.
    """
    op = operator_named(name)
    presets = [preset for preset in presets_of(op) if not preset.name.startswith("winding")]
    for case in filter(None, (case_of(op, preset) for preset in presets)):
        arrays = [*cotangents(op, case), *case.arrays]
        found = [g for g in op.bare_vjp(*arrays, **case.statics) if g is not None]
        if all(g.any() for g in found):
            return op, case, arrays, found
    raise LookupError(name)


def outputs(op, case):
    return several(op.reference(*case.arrays, **case.statics))


def of_percent(y):
    """y with its largest entry larger by 1 %."""
    y = np.array(y)
    at = np.unravel_index(np.argmax(np.abs(y)), y.shape)
    y[at] *= 1.01
    return y


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_reference_is_within_the_measured_bound_and_one_percent_is_beyond(name):
    op, case = smallest_case(name)
    gauged = expect(op, case.arrays, case.statics)
    good = outputs(op, case)
    assert grade_outputs(op, case.arrays, good, gauged).grade == "A"
    assert grade_outputs(op, case.arrays, tuple(map(of_percent, good)), gauged).grade in "CF"


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_is_within_its_measured_bound_and_one_percent_is_beyond(name):
    op, case, arrays, found = smallest_gradients(name)
    gauged = expect(op, arrays, case.statics, op.bare_vjp)
    held = Standard.of(case.dtype)
    for gradient, gauge in zip(found, gauged, strict=True):
        allowed = held.room * U * gauge.k0
        assert (np.abs(gradient - gauge.value) <= allowed).all()
        assert not (np.abs(of_percent(gradient) - gauge.value) <= allowed).all()


def test_a_kernel_a_thousand_times_too_large_from_step_32_on_is_wrong():
    op = operator_named("krylov_kernel")
    case = case_of(op, presets_of(op)[-1])
    assert case is not None
    gauged = expect(op, case.arrays, case.statics)
    (K,) = outputs(op, case)
    late = np.where(np.arange(K.shape[-1]) < 32, K, 1000 * K).astype(K.dtype)
    assert grade_outputs(op, case.arrays, (late,), gauged).grade == "F"
    # the bound of the powers of a matrix far from normal grows, and the powers do not
    call = TrackedCall(op, case.arrays, case.statics, U, 0.0)
    (derived,) = BOUNDS[op.contract].outputs(call)
    assert (np.abs(late - derived.value) <= 16 * U * derived.k0).all()


@pytest.mark.parametrize("name", ["transfer", "hope_stream", "dense_scan"])
def test_no_measured_bound_is_above_the_derived_one_of_its_entry(name):
    op, case = smallest_case(name)
    gauged = bounds(op, case.arrays, case.statics, None, unit=U, floor=0.0)
    derived = BOUNDS[op.contract].outputs(TrackedCall(op, case.arrays, case.statics, U, 0.0))
    for gauge, other in zip(gauged, derived, strict=True):
        assert (gauge.k0 <= other.k0).all()
        assert (gauge.k0 < other.k0).any()
        assert gauge.derive is not None
        assert np.array_equal(gauge.derive(), other.k1)


def test_programs_that_never_err_leave_the_derived_bound():
    op = operator_named("krylov_kernel")
    A, B, C = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([0.0, 1.0]), np.array([1.0, 0.0])
    (gauge,) = bounds(op, [A, B, C], {"l": 4}, None, unit=U, floor=0.0)
    (derived,) = BOUNDS[op.contract].outputs(TrackedCall(op, [A, B, C], {"l": 4}, U, 0.0))
    moved = gauge.k0 < derived.k0
    assert not moved[gauge.value == 0].any()


@pytest.mark.parametrize("cut", [in_pieces, interleaved])
@pytest.mark.parametrize("name", ["vandermonde_kernel", "gramians", "dense_scan_from"])
def test_the_pieces_of_a_gradient_add_up_to_it(name, cut):
    op, case = smallest_case(name)
    wide = [a.astype(np.result_type(a, np.float64)) for a in case.arrays]
    arrays = [*(d.astype(np.result_type(d, np.float64)) for d in cotangents(op, case)), *wide]
    whole = op.bare_vjp(*arrays, **case.statics)
    pieces = cut(op.bare_vjp, range(len(op.outputs)))(*arrays, **case.statics)
    for y, of_pieces in zip(whole, pieces, strict=True):
        scale = np.abs(y).max()
        assert np.abs(y - of_pieces).max() <= 1e-9 * scale
        assert not np.array_equal(y, of_pieces)


def test_gradients_of_long_sums_are_measured_but_for_quotients_of_sums():
    def measured(name):
        return gradient_programs(operator_named(name)) is not None

    for name in ("vandermonde_kernel", "diagonal_ssm", "linear_scan", "ssd_chunked"):
        assert measured(name)
    assert not measured("dss_softmax_kernel")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        *((name, True) for name in ("cauchy_kernel", "causal_convolution", "hope_step")),
        *((name, True) for name in ("linear_scan", "mamba_scan", "ssd_quadratic")),
        *((name, False) for name in ("dss_softmax_kernel", "discretize_diagonal_zoh")),
    ],
)
def test_outputs_that_are_linear_in_an_argument_or_scanned_are_measured(name, wanted):
    assert (output_programs(operator_named(name)) is not None) == wanted


@pytest.mark.parametrize("name", ["diagonal_ssm", "hope_step", "causal_convolution", "transfer"])
def test_the_sums_of_an_output_are_the_output(name):
    op, case = smallest_case(name)
    cores = [len(dims) for dims in op.input_dims]
    batch = np.broadcast_shapes(
        *(a.shape[: a.ndim - core] for a, core in zip(case.arrays, cores, strict=True))
    )
    wide = [
        np.broadcast_to(a, batch + a.shape[a.ndim - core :]).astype(np.result_type(a, np.float64))
        for a, core in zip(case.arrays, cores, strict=True)
    ]
    programs = output_programs(op)
    assert programs is not None
    whole = several(op.reference(*wide, **case.statics))
    made = [program(*wide, **case.statics) for program in programs.values()]
    made = [several(results) for results in made if results is not None]
    assert len(made) >= 3
    for results in made:
        for y, found in zip(whole, results, strict=True):
            assert np.abs(y - found).max() <= 1e-9 * np.abs(y).max()


def test_a_map_with_a_small_residual_and_a_large_error_is_refused():
    op, case = smallest_case("discretize_backward")
    A_bar, B_bar = outputs(op, case)
    gauged = expect(op, case.arrays)
    assert grade_outputs(op, case.arrays, (A_bar, B_bar), gauged).grade == "A"
    wrong = A_bar * np.float32(1 + 2**-14)
    assert not grade_outputs(op, case.arrays, (wrong, B_bar), gauged).ok
    in_norm = [replace(g, derive=None) for g in gauged]  # what the residual alone allows
    assert grade_outputs(op, case.arrays, (wrong, B_bar), in_norm).ok


@pytest.mark.parametrize(("l", "traced"), [(128, True), (129, False)])
def test_a_long_kernel_of_powers_is_not_traced_step_by_step(l, traced):
    op = operator_named("krylov_kernel")
    A = np.array([[0.5, 0.25], [0, 0.5]])
    (gauge,) = bounds(op, [A, A[0], A[0]], {"l": l}, None, unit=U, floor=0.0)
    assert (gauge.k0[0] != gauge.k0[-1]) == traced


@pytest.mark.parametrize(("most", "wanted"), [(4, [1, 3, 4, 1, 1]), (1, [1, 1, 1, 1, 1])])
def test_a_derived_bound_holds_unless_it_is_loose(most, wanted):
    derived = np.array([1.0, 3.0, 4.0, 5.0, 100.0, np.inf])
    (gauge,) = gauges(lambda x: x, np.ones(6), unit=U)
    found = measuring._smaller(replace(gauge, k0=derived, k1=derived), np.ones(6), most)
    assert found.k0.tolist() == [*wanted, np.inf]
    assert isinstance(found.derive, KnownBound)
    assert found.derive.k1 is derived


@pytest.mark.parametrize("name", ["dplr_kernel_aliased", "dplr_kernel_aliased_real"])
def test_at_one_step_a_gradient_by_dt_that_cancels_may_be_a_rounding_error(name):
    # K = −C A⁻¹ B has no dt; a program that scales A and B by it adds two shares of one size
    op, single = operator_named(name), np.float32
    w, B, C, dt = np.array([-0.5, -3]), np.array([1.7, 2]), np.array([0.9, 1.3]), np.array(0.3)
    arrays = [w, np.zeros((2, 1)), np.zeros((2, 1)), B, C, dt]
    arrays = [a.astype(single if a is dt else np.complex64) for a in arrays]
    s, v = (dt * w).astype(single), (B * C).astype(single)
    through_B = (-v / s).sum(dtype=single)
    through_A = (single(dt) * v * w.astype(single) / (s * s)).sum(dtype=single)
    assert through_A + through_B != 0
    dk = np.ones(1, op.output_types(*arrays)[0])
    gauge = expect(op, [dk, *arrays], {"l": 1}, op.bare_vjp)[-1]
    assert gauge.value == 0
    assert abs(through_A + through_B) <= standard.C * U * gauge.k0
    assert gauge.k0 <= 16 * abs(through_A)  # and no gradient of that size passes


def test_at_one_step_the_terms_that_cancel_bound_a_gradient_where_our_own_cancel_exactly():
    # s4's SSMKernelDPLR, which divides by A, returned 2.4e-08 in place of 0
    plain = operator_named("dplr_kernel_aliased")
    logarithms = adapted(plain, [log_dt(), neg_exp("w"), halves()])
    P, Q, B, C = [[0.5]], [[0.290412 - 0.0487811j]], [1], [0.277344 + 2.04949j]
    for op, w, dt in [(plain, -1, 0.0125), (logarithms, 0, np.log(0.0125))]:
        arrays = [*(np.array(a, np.complex64) for a in ([w], P, Q, B, C)), np.float32(dt)]
        dk = np.ones(1, op.output_types(*arrays)[0])
        *others, gauge = expect(op, [dk, *arrays], {"l": 1}, op.bare_vjp)
        term = np.abs(others[0].value).item() / (0.0125 if op is plain else 1)  # w̄ dw/dt, w = −1
        assert gauge.value == 0
        assert term / 2 <= gauge.k0 <= 16 * term


def test_beside_a_pole_all_gradients_have_their_derived_bounds():
    op = operator_named("cauchy_kernel")
    w, beside = np.array([1j]), np.array([1j + 3e-9])  # one number in single precision
    for z, derived in [(beside, True), (w + 0.5, False)]:
        arrays = [np.ones(1, complex), np.ones(1, complex), w, z]
        measured = [g.derive is not None for g in expect(op, arrays, {}, op.bare_vjp)]
        assert measured == [not derived] * 3


@pytest.mark.parametrize("name", ["hope_transfer", "hope_kernel_aliased"])
def test_exact_powers_at_the_nodes_1_and_minus_1_do_not_bind_programs_with_angles(name):
    op, rng = operator_named(name), np.random.default_rng(0)
    for l, measured in [(1, False), (2, False), (3, True)]:
        dk = rng.normal(size=l) * (1j if name == "hope_transfer" else 1)
        gauged = expect(op, [dk, rng.normal(size=64), np.array(0.3)], {"l": l}, op.bare_vjp)
        assert [gauge.derive is not None for gauge in gauged] == [measured] * 2


def test_powers_of_the_node_minus_1_are_exact_beyond_the_hundredth():
    op, dk = operator_named("hope_transfer"), np.array([0, 0, 1 + 1j, 0])
    arrays = [dk, np.ones(300), np.array(0.01)]
    (gauge, _), (dh, _) = expect(op, arrays, {"l": 4}, op.bare_vjp), op.bare_vjp(*arrays, l=4)
    assert (np.abs(dh - gauge.value) <= standard.C * 2.0**-53 * gauge.k0).all()


def test_a_late_lag_of_a_kernel_has_the_rounding_of_the_first_in_its_gradient():
    op, dk = operator_named("dplr_kernel"), np.zeros(65, np.float32)
    dk[28] = 1  # where the kernel is 3^-28 of its first entries
    w, P, B = (np.array(a, np.float32) for a in ([-1, -1, -1], [[0.5]] * 3, [1, 2, 3]))
    arrays = [dk, w, P, P, B, B[::-1], np.float32(1)]
    gauged = expect(op, arrays, {"l": 65}, op.bare_vjp)
    of_first = expect(op, [np.roll(dk, -28), *arrays[1:]], {"l": 65}, op.bare_vjp)
    came_back = through_the_spectrum_vjp(*arrays, l=65)
    for came, gauge, first in zip(came_back, gauged, of_first, strict=True):
        error = np.abs(came - gauge.value).max()
        assert error > 1000 * U * np.abs(gauge.value).max()
        assert error <= standard.C * U * gauge.k0.max()
        assert gauge.k0.max() <= first.k0.max()


def test_a_late_lag_has_that_rounding_also_where_a_transform_and_back_is_exact():
    op, dk = operator_named("dplr_kernel"), np.zeros(64, np.float32)
    dk[32] = 1
    assert np.array_equal(np.fft.ifft(np.fft.fft(dk)).real, dk)
    w, P, B = (np.array(a, np.float32) for a in ([-1, -1, -1], [[0.5]] * 3, [1, 2, 3]))
    for gauge in expect(op, [dk, w, P, P, B, B, np.float32(1)], {"l": 64}, op.bare_vjp):
        assert gauge.k0.min() > 1000 * np.abs(gauge.value).max()
