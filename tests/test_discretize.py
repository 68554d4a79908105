from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import kind_of, worst_of
from refssm.conformance.standard import C
from refssm.convolution import CAUSAL_CONVOLUTION, causal_convolution, causal_convolution_direct
from refssm.discretize import (
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_ZOH,
)
from refssm.scan import LINEAR_SCAN, linear_scan
from refssm.vandermonde import VANDERMONDE_KERNEL, vandermonde_kernel

TYPES = ("float32", "float64", "complex64", "complex128")
MATRIX = [DISCRETIZE_ZOH, DISCRETIZE_BILINEAR]
DIAGONAL = [DISCRETIZE_DIAGONAL_ZOH, DISCRETIZE_DIAGONAL_BILINEAR]
all_four = pytest.mark.parametrize("op", MATRIX + DIAGONAL, ids=str)
bilinear = pytest.mark.parametrize("op", [MATRIX[1], DIAGONAL[1]], ids=str)
both_forms = pytest.mark.parametrize("forms", [MATRIX, DIAGONAL], ids=["matrix", "diagonal"])


def run(op, *arrays):
    """The reference, with its argument checks."""
    return op.implementation("reference")(*arrays)


def right(op, value, *arrays):
    """True if the judge accepts `value` as the output of `op`."""
    return judge(op, lambda *_: value, *map(np.asarray, arrays)).ok


def system(op, w, B, dt):
    """The diagonal system in the form that `op` expects."""
    w, B = np.asarray(w), np.asarray(B)
    return (w, B, np.full(w.shape, dt)) if op in DIAGONAL else (np.diag(w), B, np.asarray(dt))


def random(op, dtype="float64", n=3, m=2):
    """A stable system with step size ½, in the form that `op` expects."""
    rng = np.random.default_rng(1)
    draws = [rng.standard_normal((2, n, size)) for size in (n, m)]
    A, B = (d[0] + 1j * d[1] if np.dtype(dtype).kind == "c" else d[0] for d in draws)
    A, dt = A - 4 * np.eye(n), np.full(n, 0.5) if op in DIAGONAL else np.array(0.5)
    taken = np.diag(A) if op in DIAGONAL else A
    return taken.astype(dtype), B.astype(dtype), dt.astype(np.finfo(dtype).dtype)


@all_four
def test_a_mode_that_decays_and_one_that_stands_still_by_hand(op):
    arrays = system(op, [-2.0, 0.0], [[1.0], [1.0]], 1.0)
    held = op in (DISCRETIZE_ZOH, DISCRETIZE_DIAGONAL_ZOH)
    a_bar, b_bar = (np.exp(-2), -np.expm1(-2) / 2) if held else (0.0, 0.5)
    A_bar, B_bar, _ = system(op, [a_bar, 1.0], [[b_bar], [1.0]], 1.0)
    for value in ((A_bar, B_bar), run(op, *arrays)):
        assert right(op, value, *arrays)


@all_four
def test_no_dynamics_leave_the_state_and_add_dt_b_exactly(op):
    B = np.random.default_rng(1).standard_normal((3, 2))
    A_bar, B_bar = run(op, *system(op, np.zeros(3), B, 0.1))
    assert np.array_equal(A_bar, np.ones(3) if op in DIAGONAL else np.eye(3))
    assert np.array_equal(B_bar, 0.1 * B)


@pytest.mark.parametrize("dt", [0.25, 0.5, 1.0, 8.0])
def test_the_double_integrator_held_is_exact(dt):
    A_bar, B_bar = run(DISCRETIZE_ZOH, np.eye(2, k=1), [[0.0], [1.0]], dt)
    assert A_bar.tolist() == [[1, dt], [0, 1]]
    assert B_bar.tolist() == [[dt**2 / 2], [dt]]


@pytest.mark.parametrize("dt", [0.25, 1.0, 8.0])
def test_a_chain_of_three_integrators_is_a_polynomial_of_the_step(dt):
    chain, B = np.eye(3, k=1), np.array([[0.0], [0.0], [1.0]])
    A_bar = np.array([[1, dt, dt**2 / 2], [0, 1, dt], [0, 0, 1]])
    for op, cubic in ((DISCRETIZE_ZOH, dt**3 / 6), (DISCRETIZE_BILINEAR, dt**3 / 4)):
        by_hand = A_bar, np.array([[cubic], [dt**2 / 2], [dt]])
        assert right(op, by_hand, chain, B, dt)
        assert right(op, run(op, chain, B, dt), chain, B, dt)


@pytest.mark.parametrize("angle", [0.01, 0.5, np.pi, 20.0])
def test_a_generator_of_rotations_gives_a_rotation(angle):
    A, B = np.array([[0, -angle], [angle, 0]]), np.array([[1.0], [0.0]])
    held = np.array([[np.sin(angle)], [2 * np.sin(angle / 2) ** 2]]) / angle
    slower = np.array([[1.0], [angle / 2]]) / (1 + (angle / 2) ** 2)
    turns = angle, 2 * np.arctan(angle / 2)
    for op, turn, B_bar in zip(MATRIX, turns, (held, slower), strict=True):
        rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        assert right(op, (rotation, B_bar), A, B, 1.0)
        assert right(op, run(op, A, B, 1.0), A, B, 1.0)


@pytest.mark.parametrize(
    "w", [[], [-0.7], [-3.0, -1e-9, 0.0, -40.0], [-1 + 30j, -0.5j, -2 - 1e-3j]], ids=str
)
@pytest.mark.parametrize(("op", "diagonal"), [*zip(MATRIX, DIAGONAL, strict=True)])
def test_a_diagonal_matrix_is_discretized_as_its_diagonal(op, diagonal, w):
    B = np.random.default_rng(2).standard_normal((len(w), 2))
    a_bar, B_bar = run(diagonal, *system(diagonal, w, B, 0.3))
    assert right(op, (np.diag(a_bar), B_bar), *system(op, w, B, 0.3))
    assert right(op, run(op, *system(op, w, B, 0.3)), *system(op, w, B, 0.3))


def test_the_triangular_matrix_that_scipys_exponential_gets_wrong_is_right_here():
    arrays = np.diag([-30.0, -1e-17]), np.ones((2, 1)), 1.0
    A_bar, held = np.diag([np.exp(-30.0), 1.0]), -np.expm1(-30.0) / 30
    for value in ((A_bar, np.array([[held], [1.0]])), run(DISCRETIZE_ZOH, *arrays)):
        assert right(DISCRETIZE_ZOH, value, *arrays)
    scipys = A_bar, np.array([[held], [0.0]])  # for [[−30, 0, 1], [0, −1e-17, 1], [0, 0, 0]]
    assert not right(DISCRETIZE_ZOH, scipys, *arrays)


@bilinear
def test_the_bilinear_map_sends_minus_two_to_zero_exactly(op):
    for dt in (0.5, 1.0, 4.0):
        A_bar, B_bar = run(op, *system(op, np.full(3, -2 / dt), np.ones((3, 1)), dt))
        assert not A_bar.any()
        assert np.array_equal(B_bar, np.full((3, 1), dt / 2))


@pytest.mark.parametrize("dtype", TYPES)
def test_plus_two_is_infinite_in_the_diagonal_bilinear_map(dtype):
    w, ones = np.array([2, -2], dtype), np.ones(2)
    A_bar, B_bar = run(DISCRETIZE_DIAGONAL_BILINEAR, w, ones[:, None], ones)
    assert kind_of(A_bar).tolist() == [1, 0]
    assert kind_of(B_bar).tolist() == [[1], [0]]


SINGULAR = [
    ([[2.0]], 1.0, "1"),
    ([[-1.0, 7.0], [0.0, 8.0]], [0.5, 0.125, 0.25], "0.25"),
    ([[[-1.0]], [[4.0]]], [1.0, 0.5], "0.5"),
    ([[[2.0]], [[1.0]]], [[0.5], [2.0]], "2"),
    ([[2.0, 0.0], [0.0, 0.0]], [np.nan, 1.0], "1"),  # NaN does not make a matrix singular
    ([[2.0, 0.0], [0.0, -1e12]], [1.0001, 1.0], "1"),  # neither does a large condition number
]


@pytest.mark.parametrize(("A", "dt", "step"), SINGULAR)
def test_plus_two_is_singular_in_the_bilinear_map_and_the_step_is_named(A, dt, step):
    with pytest.raises(np.linalg.LinAlgError) as error:
        run(DISCRETIZE_BILINEAR, A, np.ones((np.shape(A)[-1], 1)), dt)
    assert str(error.value) == f"discretize_bilinear: I − ½dt·A is singular at dt = {step}"


@both_forms
def test_zero_order_hold_composes_and_the_bilinear_map_does_not(forms):
    for op in forms:
        once, B_bar = run(op, *system(op, [-2.0], [[1.0]], 0.5))
        twice = once * once, once * B_bar + B_bar
        assert right(op, twice, *system(op, [-2.0], [[1.0]], 1.0)) == (op is forms[0])


@both_forms
def test_the_bilinear_map_is_of_second_order(forms):
    # R(−h) − e^−h is −h³/12 (1 − h + 13h²/20 − …); the series alternates and decreases for h ≤ 1
    def error(h):
        held, trapezoidal = (run(op, *system(op, [-1.0], [[1.0]], h))[0] for op in forms)
        return np.abs(held - trapezoidal).item()

    for h in (0.5, 0.25, 0.125, 0.0625):
        assert 8 * (1 - h) < error(h) / error(h / 2) < 8


@pytest.mark.parametrize("z", [-1e-12, 1e-12, -1e-300, 1e-12j, 1e-5 - 1e-9j], ids=str)
def test_the_diagonal_hold_keeps_its_digits_where_the_difference_cancels(z):
    arrays = np.array([z * 4]), np.ones((1, 1)), np.array([0.25])
    assert right(DISCRETIZE_DIAGONAL_ZOH, run(DISCRETIZE_DIAGONAL_ZOH, *arrays), *arrays)
    a_bar = np.exp(arrays[0] / 4)
    cancelled = a_bar, ((a_bar - 1) / arrays[0])[:, None]
    assert not right(DISCRETIZE_DIAGONAL_ZOH, cancelled, *arrays)


@all_four
def test_the_gradient_where_nothing_moves_by_hand(op):
    # dt dĀ + ½dt² B dB̄, dt dB̄ and B dB̄ for dĀ = 5, dB̄ = 7, A = 0, B = 3, dt = 2
    first, last = ((1,), (1,)) if op in DIAGONAL else ((1, 1), ())
    cotangents = [np.full(first, 5.0), np.full((1, 1), 7.0)]
    arrays = [np.zeros(first), np.full((1, 1), 3.0), np.full(last, 2.0)]
    gauges = expect(op, [*cotangents, *arrays], {}, op.bare_vjp)
    by_hand = [np.full(first, 52.0), np.full((1, 1), 14.0), np.full(last, 21.0)]
    for gradients in (by_hand, op.vjp()(*cotangents, *arrays)):
        assert worst_of(map(compare, gradients, gauges, [np.dtype(float)] * 3)).ok


@pytest.mark.parametrize("direction", [-1, 1, 1j, -1j, np.exp(2j)], ids=str)
def test_the_series_of_the_gradient_meets_its_closed_form_at_modulus_one(direction):
    op = DISCRETIZE_DIAGONAL_ZOH
    for size in (0.5, np.nextafter(1, 0), 1.0, np.nextafter(1, 2), 2.0):
        arrays = [np.array([direction * size]), np.ones((1, 1)), np.ones(1)]
        point: Any = SimpleNamespace(arrays=arrays, statics={}, generator=np.random.default_rng)
        assert adjoint_slip(op, op.vjp(), point) <= C


@pytest.mark.parametrize("types", list(product(TYPES, TYPES, TYPES[:2])), ids="-".join)
@all_four
def test_a_bar_is_real_where_a_is_and_b_bar_where_both_are(op, types):
    A, B, dt = (np.real(a).astype(t) for a, t in zip(random(op), types, strict=True))
    A_bar, B_bar = run(op, A, B, dt)
    both = np.result_type(A, B)
    assert [A_bar.dtype.kind, B_bar.dtype.kind] == [A.dtype.kind, both.kind]
    gradients = op.vjp()(A_bar, B_bar, A, B, dt)
    assert [g.dtype.kind for g in gradients] == [A.dtype.kind, B.dtype.kind, "f"]
    precision = np.finfo(np.result_type(both, dt)).dtype
    assert {np.finfo(y.dtype).dtype for y in (A_bar, B_bar, *gradients)} == {precision}


@all_four
def test_long_double_keeps_its_digits_but_lapack_has_none(op):
    arrays = system(op, np.array([-2 / 3], np.longdouble), np.ones((1, 1)), np.longdouble(1))
    if op is DISCRETIZE_BILINEAR:
        with pytest.raises(TypeError, match=r"^discretize_bilinear: `A` has dtype"):
            run(op, *arrays)
        return
    A_bar, B_bar = run(op, *arrays)
    w, eps = arrays[0].ravel(), np.finfo(np.longdouble).eps
    exact = (1 + w / 2) / (1 - w / 2) if op is DISCRETIZE_DIAGONAL_BILINEAR else np.exp(w)
    assert (abs(A_bar.ravel() - exact) <= C * eps).all()
    assert {y.dtype for y in (A_bar, B_bar, *op.vjp()(A_bar, B_bar, *arrays))} == {eps.dtype}


@all_four
@pytest.mark.parametrize("dtype", TYPES)
def test_nan_in_a_column_of_b_stays_in_that_column(op, dtype):
    A, B, dt = random(op, dtype)
    B[0, 1] = np.nan
    A_bar, B_bar = run(op, A, B, dt)
    assert not kind_of(A_bar).any()
    assert kind_of(B_bar).tolist() == [[0, 2], *[[0, 0 if op in DIAGONAL else 2]] * 2]


POISONED = [*product(MATRIX + DIAGONAL, [0, 2])]


@pytest.mark.parametrize(("op", "argument"), POISONED)
def test_nan_in_the_matrix_or_the_step_reaches_everything_of_its_system(op, argument):
    arrays = random(op)
    arrays[argument].ravel()[0] = np.nan
    A_bar, B_bar = run(op, *arrays)
    assert kind_of(A_bar).tolist() == ([2, 0, 0] if op in DIAGONAL else [[2] * 3] * 3)
    assert kind_of(B_bar)[:, 0].tolist() == ([2, 0, 0] if op in DIAGONAL else [2] * 3)


@all_four
def test_every_output_has_the_leading_axes_of_all_arguments(op):
    A, B, dt = random(op)
    B = np.stack([B, B, B, B])
    assert [y.shape for y in run(op, A, B, dt)] == op.output_shapes(A, B, dt)


@pytest.mark.parametrize("op", MATRIX, ids=str)
def test_no_inputs_are_judged_too(op):
    assert judge(op, op.reference, np.array([[-100.0]]), np.zeros((1, 0)), np.array(1.0)).ok


def test_a_system_held_and_convolved_with_its_kernel_is_its_recurrence():
    w, l, dt = np.array([-0.5 + 3j, -2 - 1j, -0.1j]), 64, np.array(0.1)
    B, row, u = np.array([[1.0], [2j], [-1.0]]), np.array([1j, 2.0, 0.5]), np.cos(np.arange(l))
    A_bar, B_bar = run(DISCRETIZE_ZOH, np.diag(w), B, dt)
    v, x = row * B_bar[:, 0], dt * w
    kernel = vandermonde_kernel(v, x, l=l)
    y = causal_convolution(u, kernel)
    a, b = np.broadcast_to(np.diag(A_bar), (l, 3)), B_bar[:, 0] * u[:, None]
    states = linear_scan(a, b)
    # the tolerances of both routes: Ā and the states; the kernel and its convolution
    held = expect(DISCRETIZE_ZOH, (np.diag(w), B, dt))[0].k0.max()
    before = np.abs(np.concatenate([0 * states[:1], states[:-1]]))
    scanned = expect(LINEAR_SCAN, (a, b))[0].k1 + linear_scan(np.abs(a), held * before)
    entered = expect(VANDERMONDE_KERNEL, (v, x), {"l": l})[0].k1
    entered = causal_convolution_direct(np.abs(u), entered)
    k = expect(CAUSAL_CONVOLUTION, (u, kernel))[0].k1 + entered + scanned @ np.abs(row)
    late = np.concatenate([[0], (states @ row)[:-1]])
    verdicts = [compare(z, Gauge(y, k, k, 1.0), y.dtype) for z in (states @ row, late)]
    assert [verdict.grade for verdict in verdicts] == ["A", "F"]
