from itertools import product

import numpy as np
import pytest
from recurrences import TYPES, drawn, each_role, each_type, integers, random

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.discretize import discretize_bilinear
from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM, DIAGONAL_SSM, LINEAR_SCAN

QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])  # a rotation by 90°


def impulse(l, n, place=0):
    """1 in the first component at one time."""
    b = np.zeros((l, n))
    b[place, 0] = 1
    return b


def both(role):
    return DENSE_SCAN.implementation(role), DENSE_SCAN_FROM.implementation(role)


@each_role
def test_the_response_to_an_impulse_is_the_powers_of_the_matrix(role):
    scan, _ = both(role)
    (A,) = integers(1, (3, 3))
    x = scan(A, impulse(20, 3))
    for k in range(20):
        assert np.array_equal(x[k], np.linalg.matrix_power(A.astype(object), k)[:, 0].astype(float))


@each_role
def test_a_companion_matrix_counts_fibonaccis_rabbits(role):
    scan, resume = both(role)
    A, rabbits = np.array([[1.0, 1.0], [1.0, 0.0]]), [0, 1]
    while len(rabbits) < 79:
        rabbits.append(rabbits[-1] + rabbits[-2])
    assert rabbits[78] < 2**53
    x = scan(A, impulse(78, 2))
    assert x.tolist() == [[rabbits[k + 1], rabbits[k]] for k in range(78)]
    assert np.array_equal(resume(A, np.zeros((77, 2)), [1.0, 0.0]), x[1:])


@each_role
def test_four_rotations_by_a_right_angle_are_none(role):
    scan, resume = both(role)
    x = scan(QUARTER, impulse(1000, 2))
    cycle = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert np.array_equal(x, np.tile(cycle, (250, 1)))
    turned = resume(QUARTER, np.zeros((1000, 2)), [3.0, 5.0])
    assert np.array_equal(turned[3::4], np.tile([3.0, 5.0], (250, 1)))
    assert np.array_equal(scan([[1j]], np.eye(9, 1)).ravel(), 1j ** np.arange(9))


@each_role
def test_a_cycle_of_seven_places_returns_after_seven_steps(role):
    scan, _ = both(role)
    x = scan(np.roll(np.eye(7), 1, axis=0), impulse(50, 7))
    assert np.array_equal(x, np.eye(7)[np.arange(50) % 7])


@each_role
def test_a_nilpotent_matrix_is_a_delay_line_and_forgets_after_n_steps(role):
    scan, _ = both(role)
    shift, u = np.eye(5, k=-1), np.arange(1.0, 13.0)
    x = scan(shift, u[:, None] * np.eye(1, 5))
    earlier = np.concatenate([np.zeros(4), u])
    assert x.tolist() == [earlier[k : k + 5][::-1].tolist() for k in range(12)]
    assert not scan(shift, impulse(9, 5))[5:].any()


@each_role
def test_no_memory_returns_the_inputs_and_the_identity_adds_them_up(role):
    scan, resume = both(role)
    b, x0 = integers(2, (30, 3), (3,))
    assert np.array_equal(scan(np.zeros((3, 3)), b), b)
    assert np.array_equal(resume(np.zeros((3, 3)), b, x0), b)
    assert np.array_equal(scan(np.eye(3), b), np.cumsum(b, axis=0))
    assert np.array_equal(resume(np.eye(3), b, x0), x0 + np.cumsum(b, axis=0))


@each_role
def test_one_half_of_the_identity_gives_geometric_sums(role):
    scan, _ = both(role)
    k = np.arange(50.0)[:, None]
    assert np.array_equal(scan(np.eye(2) / 2, np.ones((50, 2))), (2 - 0.5**k) * np.ones(2))


@each_role
def test_a_jordan_block_sums_the_sums(role):
    scan, _ = both(role)
    x = scan([[1.0, 1.0], [0.0, 1.0]], np.tile([0.0, 1.0], (100, 1)))
    k = np.arange(100)
    assert np.array_equal(x, np.stack([k * (k + 1) // 2, k + 1], axis=1))


@each_role
@each_type
def test_a_diagonal_matrix_is_the_scan_of_its_diagonal(role, dtype):
    scan, resume = both(role)
    for draw, l in ((integers, 12), (random, 5)):
        a, b, x0 = draw(3, (3,), (l, 3), (3,), dtype=dtype)
        A, decays = np.diag(a), np.broadcast_to(a, (l, 3))
        apart = LINEAR_SCAN.reference(decays, b)
        assert judge(DENSE_SCAN, lambda *_, x=apart: x, A, b).ok
        assert judge(LINEAR_SCAN, lambda *_, A=A, b=b: scan(A, b), decays, b).ok
        assert draw is random or np.array_equal(scan(A, b), apart)
        assert draw is random or np.array_equal(resume(A, b, 0 * x0), apart)


@each_role
def test_in_the_eigenbasis_of_a_rotation_it_is_a_diagonal_system_exactly(role):
    scan, _ = both(role)
    V = np.array([[1, 1], [-1j, 1j]])  # QUARTER V = V diag(i, −i)
    V_inverse = np.array([[1, 1j], [1, -1j]]) / 2
    (b,) = integers(4, (40, 2))
    y = DIAGONAL_SSM.implementation(role)([1j, -1j], V_inverse, V, np.zeros((2, 2)), b)
    assert not y.imag.any()
    assert np.array_equal(y.real, scan(QUARTER, b))


def test_a_circulant_matrix_loses_no_digits_in_its_eigenbasis():
    n, l = 4, 256
    c, b = random(5, (n,), (l, n))
    A = np.stack([np.roll(c, k) for k in range(n)], axis=1) / np.abs(c).sum()
    F = 1j ** np.outer(np.arange(n), -np.arange(n))  # exact entries; F⁻¹ = F*/4 is exact, too
    a = F @ (c / np.abs(c).sum())
    y = DIAGONAL_SSM.reference(a, F, F.conj() / n, np.zeros((n, n)), b)
    verdict = judge(DENSE_SCAN, lambda *_: y.real.copy(), A, b)
    assert verdict.grade == "A"
    assert verdict.bits > 51


@pytest.mark.parametrize(("n", "lost"), [(2, 0), (8, 12), (16, 30), (24, 53)])
def test_hippo_legs_loses_digits_in_its_eigenbasis(n, lost):
    # the condition number of the eigenvectors grows so fast that no digit is correct at n = 24
    i = np.arange(n)
    A = -np.tril(np.sqrt(np.outer(2 * i + 1, 2 * i + 1)), -1) - np.diag(i + 1.0)
    A_bar, B_bar = discretize_bilinear(A, np.sqrt(2 * i + 1)[:, None], np.array(0.01))
    b = np.cos(np.arange(64) / 5)[:, None] * B_bar[:, 0]
    a, V = np.linalg.eig(A_bar)
    y = DIAGONAL_SSM.reference(a, np.linalg.inv(V), V, np.zeros((n, n)), b)
    verdict = judge(DENSE_SCAN, lambda *_: np.real(y).copy(), A_bar, b)
    assert judge(DENSE_SCAN, DENSE_SCAN.reference, A_bar, b).grade == "A"
    assert verdict.bits <= 53 - lost
    assert verdict.ok == (n == 2)


@each_role
def test_nan_in_an_input_reaches_every_component_one_step_later(role):
    scan, resume = both(role)
    A, b = np.stack([np.eye(3)] * 2), np.ones((2, 4, 3))
    b[0, 1, 0] = np.nan  # 0·NaN is NaN: the zeros of A do not stop it
    for x in (scan(A, b), resume(A, b, np.ones(3))):
        assert kind_of(x[0]).tolist() == [[0, 0, 0], [2, 0, 0], [2, 2, 2], [2, 2, 2]]
        assert not kind_of(x[1]).any()


@each_role
def test_nan_in_a_row_of_the_matrix_spares_the_first_state_from_rest_only(role):
    scan, resume = both(role)
    A, b = np.array([[1.0, 2.0], [np.nan, 1.0]]), np.ones((3, 2))
    assert kind_of(scan(A, b)).tolist() == [[0, 0], [0, 2], [2, 2]]
    assert kind_of(resume(A, b, [0.0, 0.0])).tolist() == [[0, 2], [2, 2], [2, 2]]


@each_role
@each_type
def test_pieces_cut_anywhere_are_the_whole(role, dtype):
    scan, resume = both(role)
    A, b, x0 = drawn(DENSE_SCAN_FROM, 6, dtype=dtype, l=7)
    for start in (None, x0):
        run = scan if start is None else lambda A, b, x0=start: resume(A, b, x0)
        x = run(A, b)
        for k in range(1, 8):
            again = resume(A, b[k:], x[k - 1])
            assert np.array_equal(np.concatenate([run(A, b[:k]), again]), x)


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
@each_role
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(role, types):
    A, b, x0 = np.ones((2, 2), types[0]), np.ones((3, 2), types[1]), np.ones(2, "float32")
    for op, arrays in ((DENSE_SCAN, (A, b)), (DENSE_SCAN_FROM, (A, b, x0))):
        x = op.implementation(role)(*arrays)
        assert x.dtype == np.result_type(*arrays)
        gradients = op.vjp(role)(x, *arrays)
        assert [g.dtype.kind for g in gradients] == [a.dtype.kind for a in arrays]
        assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(x.dtype).dtype}


def test_long_double_keeps_its_digits_in_the_references():
    eps = np.finfo(np.longdouble).eps
    A, b = np.eye(1, dtype=np.longdouble), np.full((3, 1), eps)
    b[0] = 1
    assert (DENSE_SCAN.implementation("reference")(A, b)[:, 0] - 1).tolist() == [0, eps, 2 * eps]
    assert all(g.dtype == np.longdouble for g in DENSE_SCAN.vjp()(b, A, b))


BATCHES = [((), (), ()), ((3,), (), ()), ((), (3,), (1,)), ((2, 1), (3,), ()), ((), (), (4, 1))]


@pytest.mark.parametrize("batches", BATCHES, ids=str)
@each_role
def test_leading_axes_broadcast_and_gradients_have_the_shapes_of_their_arguments(role, batches):
    cores = ((2, 2), (5, 2), (2,))
    A, b, x0 = random(7, *(batch + core for batch, core in zip(batches, cores, strict=True)))
    for op, arrays in ((DENSE_SCAN, (A, b)), (DENSE_SCAN_FROM, (A, b, x0))):
        run = op.implementation(role)
        assert run(*arrays).shape == (*op.batch_shape(*arrays), 5, 2)
        assert judge(op, run, *arrays).grade == "A"
        gradients = op.vjp(role)(run(*arrays), *arrays)
        assert [g.shape for g in gradients] == [a.shape for a in arrays]


@each_role
def test_the_gradient_by_hand(role):
    A, b = np.array([[2.0, 3j], [5.0, 7.0]]), np.array([[1.0, 2j], [0.0, 0.0]])
    dx = np.array([[1.0, 0.0], [1j, 1.0]])
    dA, db = DENSE_SCAN.vjp(role)(dx, A, b)
    assert db.tolist() == [[1 + 2j + 5, -3j * 1j + 7], [1j, 1]]  # g_0 = dx_0 + Aᴴ g_1
    assert dA.tolist() == [[1j, 1j * -2j], [1, -2j]]  # g_1 x_0ᴴ, x_0 = b_0


@each_role
def test_the_gradient_from_a_state_by_hand(role):
    A, b, dx, x0 = [[2.0, 3.0], [0.0, 1.0]], [[1.0, 1.0]], [[5.0, 7.0]], [11.0, 13.0]
    dA, db, dx0 = DENSE_SCAN_FROM.vjp(role)(dx, A, b, x0)
    assert db.tolist() == dx
    assert dA.tolist() == [[55, 65], [77, 91]]
    assert dx0.tolist() == [10, 15 + 7]


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 7), (31, 1)], ids=str)
@each_role
def test_no_time_no_state_and_one_of_each(role, sizes):
    l, n = sizes
    for op in (DENSE_SCAN, DENSE_SCAN_FROM):
        arrays = drawn(op, 8, l=l, n=n)
        x = op.implementation(role)(*arrays)
        assert x.shape == (l, n)
        gradients = op.vjp(role)(x, *arrays)
        assert [g.shape for g in gradients] == [a.shape for a in arrays]
        assert l or not any(g.any() for g in gradients)
        assert judge(op, op.implementation(role), *arrays).ok


@each_role
def test_arguments_are_left_alone_and_results_are_new(role):
    for op in (DENSE_SCAN, DENSE_SCAN_FROM):
        arrays = drawn(op, 9, l=1)
        before = [a.copy() for a in arrays]
        x = op.implementation(role)(*arrays)
        cotangent = np.ones_like(x)
        gradients = op.vjp(role)(cotangent, *arrays)
        assert all(map(np.array_equal, arrays, before))
        for new, old in product((x, *gradients), (*arrays, cotangent)):
            assert not np.shares_memory(new, old)


@each_role
def test_sizes_that_disagree_are_told(role):
    scan, resume = both(role)
    b = np.ones((4, 2))
    with pytest.raises(ValueError, match=r"^dense_scan: `A` has n=3, but n=2 along another axis"):
        scan(np.ones((2, 3)), b)
    with pytest.raises(ValueError, match=r"^dense_scan: `b` has n=2, but earlier arguments have"):
        scan(np.eye(3), b)
    with pytest.raises(ValueError, match=r"^dense_scan: `A` needs core shape \(n, n\), got shape"):
        scan(np.ones(2), b)
    with pytest.raises(ValueError, match=r"^dense_scan_from: `x0` has n=1, but earlier arguments"):
        resume(np.eye(2), b, [0.0])
    with pytest.raises(TypeError, match=r"^dense_scan: `A` has dtype float16, wanted one of"):
        scan(np.eye(2, dtype=np.float16), b)
