import numpy as np
import pytest
from recurrences import (
    FROM_REST,
    PAIRED,
    VARYING,
    drawn,
    each_role,
    each_type,
    integers,
    random,
    same,
)

from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.scan import (
    DENSE_SCAN,
    DIAGONAL_SSM,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    LINEAR_SCAN,
)
from refssm.vandermonde import VANDERMONDE_KERNEL

each_from_rest = pytest.mark.parametrize("op", FROM_REST, ids=str)


def call(op, role, a, *others):
    """The outputs; a constant decay is repeated if the operator needs one per step."""
    if op in VARYING:
        a = np.broadcast_to(a, (*np.shape(others[3])[:-1], np.shape(a)[-1]))
    return op.implementation(role)(a, *others)


def weight(op):
    """How often each stored mode counts."""
    return 2 if op in PAIRED else 1


@each_role
@each_from_rest
def test_the_response_to_an_impulse_is_d_and_the_powers_of_the_decays_between_c_and_b(op, role):
    a, B, C, D = integers(1, (3,), (3, 2), (4, 3), (4, 2))
    for channel in range(2):
        u = np.zeros((12, 2))
        u[0, channel] = 1
        y = call(op, role, a, B, C, D, u)
        wanted = [weight(op) * (C * a**k) @ B[:, channel] for k in range(12)]
        wanted[0] = wanted[0] + D[:, channel]
        assert np.array_equal(y, wanted)


@each_role
@each_from_rest
def test_a_delayed_input_gives_the_delayed_output(op, role):
    a, B, C, D, u = integers(2, (3,), (3, 2), (2, 3), (2, 2), (8, 2))
    y = call(op, role, a, B, C, D, u)
    for delay in range(9):
        late = np.concatenate([np.zeros((delay, 2)), u[: 8 - delay]])
        assert not call(op, role, a, B, C, D, late)[:delay].any()
        assert np.array_equal(call(op, role, a, B, C, D, late)[delay:], y[: 8 - delay])


@each_role
@each_from_rest
def test_a_step_approaches_its_limit_geometrically(op, role):
    k, one = np.arange(50.0)[:, None], np.ones((1, 1))
    y = call(op, role, [0.5], one, one, 3 * one, np.ones((50, 1)))
    assert np.array_equal(y, 3 + weight(op) * (2 - 0.5**k))


@each_role
@each_type
def test_with_identities_around_it_it_is_the_linear_scan(role, dtype):
    a, u = random(3, (9, 3), (9, 3), dtype=dtype)
    eye, none = np.eye(3, dtype=dtype), np.zeros((3, 3), dtype)
    x = LINEAR_SCAN.implementation(role)(a, u)
    y = DIAGONAL_SSM_VARYING.implementation(role)(a, eye, eye, none, u)
    assert np.array_equal(y, x)
    assert judge(LINEAR_SCAN, lambda *_: y, a, u).ok


@each_role
@each_type
def test_a_decay_that_does_not_vary_is_one_that_varies(role, dtype):
    for draw in (integers, random):
        for fixed, varying in (
            (DIAGONAL_SSM, DIAGONAL_SSM_VARYING),
            (DIAGONAL_SSM_STATEFUL, DIAGONAL_SSM_VARYING_STATEFUL),
        ):
            a, *others = drawn(fixed, 4, draw, dtype)
            y = fixed.implementation(role)(a, *others)
            repeated = np.tile(a, (6, 1))
            assert same(varying.implementation(role)(repeated, *others), y)
            assert judge(varying, lambda *_, y=y: y, repeated, *others).ok


@each_role
@each_type
def test_it_is_a_dense_scan_with_a_diagonal_matrix_read_and_driven(role, dtype):
    a, B, C, D, u = drawn(DIAGONAL_SSM, 5, dtype=dtype, l=9, p=4)
    x = DENSE_SCAN.implementation(role)(np.diag(a), u @ B.T)
    y = DIAGONAL_SSM.implementation(role)(a, B, C, D, u)
    assert np.array_equal(y, x @ C.T + u @ D.T)


@each_role
def test_one_channel_is_the_convolution_with_its_kernel(role):
    v, x, u = random(6, (3,), (3,), (60,), dtype="complex128")
    x = -np.abs(x.real) / 10 + 1j * x.imag
    kernel = VANDERMONDE_KERNEL.implementation(role)(v, x, l=60)
    convolved = CAUSAL_CONVOLUTION_DIRECT.implementation(role)(u, kernel)
    arrays = (np.exp(x), np.ones((3, 1)), v[None], np.zeros((1, 1)), u[:, None])
    y = DIAGONAL_SSM.implementation(role)(*arrays)[:, 0]
    # the tolerances of both routes: the recurrence, and the kernel in the sum
    scanned = expect(DIAGONAL_SSM, arrays)[0].k1[:, 0]
    entered = expect(VANDERMONDE_KERNEL, (v, x), {"l": 60})[0].k1
    k = scanned + CAUSAL_CONVOLUTION_DIRECT.reference(np.abs(u), entered)
    late = np.concatenate([[0], y[:-1]])
    verdicts = [compare(z, Gauge(convolved, k, k, 1.0), y.dtype) for z in (y, late)]
    assert [verdict.grade for verdict in verdicts] == ["A", "F"]


@each_role
def test_one_of_each_pair_is_both_exactly_on_integers(role):
    a, B, C = integers(7, (3,), (3, 2), (2, 3), dtype="complex128")
    D, u, x0 = *integers(8, (2, 2), (8, 2)), a * (1 - 2j)
    pairs = (np.append(a, a.conj()), np.vstack([B, B.conj()]), np.hstack([C, C.conj()]), D, u)
    y = DIAGONAL_SSM.implementation(role)(*pairs)
    halves = DIAGONAL_SSM_REAL.implementation(role)(a, B, C, D, u)
    assert halves.dtype == np.float64
    assert np.array_equal(halves, y)
    start = np.append(x0, x0.conj())
    y, x = DIAGONAL_SSM_STATEFUL.implementation(role)(*pairs, start)
    halves, last = DIAGONAL_SSM_REAL_STATEFUL.implementation(role)(a, B, C, D, u, x0)
    assert np.array_equal(halves, y)
    assert np.array_equal(np.append(last, last.conj()), x)


@each_role
def test_one_of_each_pair_is_both_as_the_judge_sees_it(role):
    (a, B, C), (D, u) = (
        random(9, (3,), (3, 2), (2, 3), dtype="complex128"),
        random(10, (2, 2), (40, 2)),
    )
    a /= np.abs(a)
    pairs = (np.append(a, a.conj()), np.vstack([B, B.conj()]), np.hstack([C, C.conj()]), D, u)
    halves = DIAGONAL_SSM_REAL.implementation(role)(a, B, C, D, u)
    assert judge(DIAGONAL_SSM, lambda *_: halves.astype(complex), *pairs).grade == "A"
    once = (halves + u @ D.T) / 2  # Re instead of 2 Re
    assert judge(DIAGONAL_SSM, lambda *_: once.astype(complex), *pairs).grade == "F"


@each_role
def test_a_mode_on_the_real_axis_is_given_with_half_its_coefficient(role):
    a, B, C, D, u = integers(11, (3,), (3, 2), (2, 3), (2, 2), (9, 2))
    y = DIAGONAL_SSM.implementation(role)(a, B, C, D, u)
    assert np.array_equal(DIAGONAL_SSM_REAL.implementation(role)(a, B, C / 2, D, u), y)
    zero = 0j * C  # complex type, but real values
    y_complex = DIAGONAL_SSM_REAL.implementation(role)(a + 0j, B, (C + zero) / 2, D, u)
    assert (y_complex.dtype, np.array_equal(y_complex, y)) == (np.float64, True)


@each_role
def test_one_of_each_pair_is_a_real_system_with_twice_the_states(role):
    a, B, C = integers(12, (2,), (2, 3), (1, 2), dtype="complex128")
    (u,) = integers(13, (7, 3))
    rotations = np.block([[np.diag(a.real), -np.diag(a.imag)], [np.diag(a.imag), np.diag(a.real)]])
    x = DENSE_SCAN.implementation(role)(rotations, u @ np.vstack([B.real, B.imag]).T)
    y = DIAGONAL_SSM_REAL.implementation(role)(a, B, C, np.zeros((1, 3)), u)
    assert np.array_equal(y, 2 * x @ np.hstack([C.real, -C.imag]).T)
