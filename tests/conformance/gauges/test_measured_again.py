"""Honest programs beyond a measured bound, and why more copies and programs do not refuse them."""

import numpy as np
import pytest
from honest import cauchy
from honest.dplr.kernel import woodbury_aliased
from honest.dplr.vjp import dense_at_nodes_vjp

from refssm.catalog import OPERATORS
from refssm.conformance import standard
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.gauges.contracts import output_programs
from refssm.conformance.gauges.programs import measured
from refssm.conformance.gauges.programs.measured import InOrder, in_order
from refssm.conformance.judging.allowed import MORE, decided
from refssm.conformance.judging.expected import expect
from refssm.conformance.standard import Standard
from refssm.presets.catalog import presets_of


def ratios(found, gauged, unit):
    """The largest errors over K0, at first and measured again."""
    at_first, again = 0.0, 0.0
    for y, gauge in zip(found, gauged, strict=True):
        error = np.abs(y - gauge.value).astype(float) / unit
        at_first = max(at_first, (error / gauge.k0).max())
        again = max(again, (error / gauge.more_copies()).max())
    return at_first, again


@pytest.mark.parametrize("gradient", [False, True])
def test_a_fast_mode_may_be_resolved_at_nodes_that_are_rounded_once(gradient):
    op, l = operator_named("dplr_kernel_aliased"), 4097
    w, ones = np.array([-1 + 1740j], np.complex64), np.ones(1, np.complex64)
    case = [w, *[np.zeros((1, 1), np.complex64)] * 2, ones, ones, np.float32(1)]
    if gradient:
        dk = (np.arange(l) == 3).astype(np.complex64)
        gauged = expect(op, [dk, *case], {"l": l}, op.bare_vjp)
        kept = [0, 3, 4, 5]  # dP and dQ are 0
        found, gauged = ([x[i] for i in kept] for x in (dense_at_nodes_vjp(dk, *case, l=l), gauged))
    else:
        gauged, found = expect(op, case, {"l": l}), [woodbury_aliased(*case, l=l)]
    at_first, again = ratios(found, gauged, 2.0**-24)
    assert at_first > 2 * standard.C  # beside z = −1 few digits of 1 + z stay
    assert again < standard.C


@pytest.mark.parametrize("name", ["transfer", "transfer_discrete"])
@pytest.mark.parametrize(
    ("through", "D"), [(0, 0.5), (0, 1e-6), (1e-7, 0.5), (1e-7, 1e-6), (1e-7, 0)]
)
def test_another_basis_may_spoil_zeros_that_keep_inputs_from_outputs(through, D, name):
    op = operator_named(name)
    A = np.array([[-0.14, 0, 0], [0.3, -0.25, 0], [0.2, -0.4, -0.3]])
    B, C, D = np.array([0, 0, 637.0]), np.array([0.8, 0.8, through]), np.array(D)
    s = np.array([1.5 + 0.1j, -1.2j])
    Q, _ = np.linalg.qr(np.random.default_rng(5).normal(size=A.shape))
    found = op.reference(Q.T @ A @ Q, Q.T @ B, C @ Q, D, s)
    at_first, _ = ratios([found], expect(op, [A, B, C, D, s]), 2.0**-53)
    assert at_first < standard.C  # without the program in another basis: above 100 in all of them


def test_a_basis_that_is_not_orthonormal_is_still_refused():
    op = operator_named("transfer")
    A, B, C, D = np.diag([-0.14, -0.3]), np.array([0, 637.0]), np.array([0.8, 0]), np.array(0.5)
    s, T = np.array([1.5 + 0.1j]), np.array([[1, 1], [1, 1 + 1e-5]])
    found = op.reference(np.linalg.solve(T, A @ T), np.linalg.solve(T, B), C @ T, D, s)
    _, again = ratios([found], expect(op, [A, B, C, D, s]), 2.0**-53)
    assert again > 2 * standard.C


def test_powers_of_a_complex_number_by_numpy_lose_digits_where_their_sum_cancels(monkeypatch):
    """The honest gradient takes products."""
    op, l = operator_named("resolvent_at_roots"), 300
    a = np.array([-0.99731366 - 0.00618389j, -0.9984235 - 0.00590986j])
    case = [(np.arange(l) == 83).astype(complex), np.full(2, -0.8255), a]
    gauged = expect(op, case, {"l": l}, op.bare_vjp)
    _, by_products = ratios(cauchy.transform_vjp(*case, l=l), gauged, 2.0**-53)
    monkeypatch.setattr(cauchy, "_products", cauchy._powers)
    _, by_powers = ratios(cauchy.transform_vjp(*case, l=l), gauged, 2.0**-53)
    assert by_powers > 50 * by_products
    assert by_products < 1


def test_a_loop_over_equal_poles_is_right():
    op = operator_named("cauchy_kernel_pairs")
    v = np.full(255, -0.28139937 - 0.1807487j, np.complex64)
    w = np.full(255, -0.00686389, np.complex64)
    z = (1j * np.linspace(0.005, 0.2, 400)).astype(np.complex64)
    terms = [v.conj() / (z[:, None] - w.conj()), v / (z[:, None] - w)]
    found = np.add.accumulate(np.concatenate(terms, axis=-1), axis=-1)[:, -1]
    at_first, again = ratios([found], expect(op, [v, w, z]), 2.0**-24)
    assert at_first > 2 * again
    assert again < standard.C / 2
    _, worse = ratios([found * np.float32(1 + 2.0**-16)], expect(op, [v, w, z]), 2.0**-24)
    assert worse > standard.C


def test_a_loop_over_4096_equal_terms_of_a_gradient_is_still_inaccurate():
    op, l = operator_named("vandermonde_kernel"), 4096
    v, w = np.ones(2, np.complex64), np.zeros(2, np.complex64)
    dk = np.full(l, 1.4867, np.complex64)
    gauged = expect(op, [dk, v, w], {"l": l}, op.bare_vjp)
    dv = np.add.accumulate(np.broadcast_to(dk, (2, l)), axis=-1)[:, -1]
    _, again = ratios([dv], gauged[:1], 2.0**-24)
    assert again > standard.C


@pytest.mark.parametrize(("off", "grades"), [(2.0**-35, "A"), (2.0**-10, "CF")])
def test_a_sum_that_is_0_in_our_programs_by_luck_is_measured_again(off, grades):
    """Nodes at z and z* cancel exactly if they are summed alike: seen as dP = 2⁻³⁵ for 0."""
    op = operator_named("dplr_kernel_aliased_real")
    w = np.array([-0.07297255, -8.694831], np.complex64)
    low_rank, B = np.full((2, 1), 0.5, np.complex64), np.full(2, 7j, np.complex64)
    C = np.array([-536.65564 + 545.72577j, -9.6741633e-07 - 7.3727006e-06j], np.complex64)
    dk = (np.arange(5) == 0).astype(np.float32)
    case = [dk, w, low_rank, low_rank, B, C, np.float32(2.0**-6)]
    dP = expect(op, case, {"l": 5}, op.bare_vjp)[1]
    error, judged = np.array([[off], [0]]), np.ones((2, 1), bool)
    assert off > MORE * standard.C * 2.0**-24 * dP.k0.max()
    bounds = decided(dP, Standard.of(np.complex64), np.dtype(np.complex64), error, judged)
    assert bounds.grade(error, judged) in grades


def test_sums_and_products_in_order_are_those_of_loops():
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 5, 300), (2, 300, 4)))
    total = np.float32(0) * a[..., 0]
    for k in range(300):
        total = total + a[..., k]
    assert np.array_equal(in_order(a).sum(-1), total)
    assert np.array_equal(in_order(a).sum((1, 2)).shape, (2,))
    assert in_order(a).sum(-1, keepdims=True).shape == (2, 5, 1)
    product = np.zeros((2, 5, 4), np.float32)
    for k in range(300):
        product = product + a[..., k, None] * b[..., None, k, :]
    assert np.array_equal(in_order(a) @ in_order(b), product)
    assert np.array_equal(np.einsum("...nk,...km->...nm", in_order(a), b), product)
    assert np.allclose(np.einsum("...nk->...kn", in_order(a)), a.swapaxes(-1, -2))
    assert in_order(a.astype(np.float64)).dtype == np.float64
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 3)):
        empty = np.zeros(shape, np.complex64)
        for axis in (-1, 0, None):
            assert np.array_equal(in_order(empty).sum(axis), empty.sum(axis))
        product = in_order(empty) @ in_order(np.ones((shape[-1], 4), np.complex64))
        assert np.array_equal(product, np.zeros((*shape[:-1], 4)))
    assert (in_order(np.ones((3, 0), np.float32)) @ np.ones((0, 4), np.float32) == 0).all()


def test_what_is_added_in_place_still_sums_in_order():
    x = in_order(np.ones(300, np.float32))
    x += np.float32(0.1)
    assert isinstance(x, InOrder)
    assert x.sum() == np.add.accumulate(np.full(300, 1.1, np.float32))[-1]
    assert x.sum(initial=np.float32(2)) == np.asarray(x).sum(initial=np.float32(2))
    assert x.sum(dtype=np.float64) == np.full(300, np.float32(1.1), float).sum()


MEASURED = [op for op in OPERATORS if not op.constructor and output_programs(op)]


@pytest.mark.parametrize("op", MEASURED, ids=str)
def test_every_operator_is_measured_again(op):
    dtype = "complex64" if any(d.kind == "complex" for d in op.inputs.values()) else "float32"
    case = ordinary_case(op, dtype, (40, 3, 2, 2))
    for gauge in expect(op, case.arrays, case.statics):
        if gauge.more_copies is not None:
            assert (gauge.more_copies() >= gauge.k0).all()


def test_a_kernel_without_a_node_near_a_pole_is_measured_again():
    """One program has no nodes to sum at then: an axis of it is empty."""
    op = operator_named("dplr_kernel")
    preset = next(preset for preset in presets_of(op) if preset.name == "legs-16")
    sizes = {"l": 2048, "n": 16, "r": 1}
    case = Case(op, np.dtype("complex64"), sizes, {"d": 1}, {}, 7, None, {}, preset)
    (gauge,) = expect(op, case.arrays, case.statics)
    assert gauge.more_copies is not None
    assert gauge.more_copies().shape == (1, 2048)


def test_outputs_are_summed_in_order_and_gradients_are_not(monkeypatch):
    op, l = operator_named("dss_exp_kernel"), 20
    case = [np.full(2, -0.1, np.float32), np.full(2, 0.7, np.float32), np.float32(0.5)]
    summed = []
    monkeypatch.setattr(measured, "in_order", lambda a: summed.append(a) or a)
    for gauge in expect(op, [np.ones(l, np.float32), *case], {"l": l}, op.bare_vjp):
        assert gauge.more_copies is not None
        gauge.more_copies()
    assert not summed
    (gauge,) = expect(op, case, {"l": l})
    assert gauge.more_copies is not None
    gauge.more_copies()
    assert len(summed) == len(case)
