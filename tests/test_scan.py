from itertools import product

import numpy as np
import pytest

import refssm.jit.scan as jit
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.scan import (
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    linear_scan,
    linear_scan_from,
    linear_scan_from_vjp,
    linear_scan_vjp,
)

TYPES = ("float32", "float64", "complex64", "complex128")
SCANS = [linear_scan, jit.linear_scan]
SCANS_FROM = [linear_scan_from, jit.linear_scan_from]
roles = pytest.mark.parametrize("scan", SCANS, ids=["reference", "jit"])
roles_from = pytest.mark.parametrize("scan", SCANS_FROM, ids=["reference", "jit"])


def random(seed, *shapes, dtype="float64"):
    """Random numbers of modulus about 1; complex for a complex dtype."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((2, *shape)) for shape in shapes]
    is_complex = np.dtype(dtype).kind == "c"
    return [(p[0] + 1j * p[1] if is_complex else p[0]).astype(dtype) for p in parts]


def integers(seed, *shapes):
    """Small random integers, so that nothing rounds."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-2, 3, shape).astype(float) for shape in shapes]


@roles
def test_the_example_of_the_docstring(scan):
    x = scan([[0.5], [0.5], [0.5]], [[1.0], [0.0], [2.0]])
    assert x.ravel().tolist() == [1.0, 0.5, 2.25]


@roles_from
def test_the_example_of_the_docstring_from_a_state(scan):
    assert scan([[0.5], [0.5]], [[0.0], [2.0]], [1.0]).ravel().tolist() == [0.5, 2.25]


@roles
def test_a_constant_decay_of_one_is_a_cumulative_sum(scan):
    b = np.arange(1.0, 101.0)[:, None]
    assert np.array_equal(scan(np.ones_like(b), b), np.cumsum(b, axis=0))


@roles
def test_the_response_to_an_impulse_is_the_powers_of_the_decay(scan):
    b = np.zeros((60, 1))
    b[0] = 1
    for decay in (0.5, -2.0, 1j, 1 + 1j):
        x = scan(np.full((60, 1), decay), b)
        powers = np.cumprod(np.append(1, np.full(59, decay)))
        assert np.array_equal(x.ravel(), powers)


@roles
def test_a_constant_input_gives_the_geometric_sum(scan):
    k = np.arange(50.0)[:, None]
    half = np.full((50, 1), 0.5)
    assert np.array_equal(scan(half, np.ones_like(k)), 2 - 0.5**k)
    third = np.full((50, 1), 1 / 3)
    geometric = (1 - third ** (k + 1)) / (1 - third)
    assert judge(LINEAR_SCAN, lambda *_: geometric, third, np.ones_like(k)).ok
    assert judge(LINEAR_SCAN, scan, third, np.ones_like(k)).ok


@roles
def test_a_decay_of_zero_forgets_everything_before(scan):
    a, b = random(1, (9, 2), (9, 2))
    a[5] = 0
    x = scan(a, b)
    assert np.array_equal(x[5:], scan(a[5:], b[5:]))
    assert np.array_equal(x[5], b[5])


@roles
def test_the_first_state_is_the_first_input_whatever_the_first_decay(scan):
    a, b = random(2, (4, 3), (4, 3))
    expected = scan(a, b)
    for first in (np.nan, np.inf, 0.0):
        a[0] = first
        assert np.array_equal(scan(a, b), expected)


@roles_from
def test_from_a_state_the_first_decay_counts(scan):
    x = scan([[np.nan, 3.0]], [[1.0, 1.0]], [1.0, 2.0])
    assert kind_of(x).tolist() == [[2, 0]]
    assert x[0, 1] == 7


@roles
def test_nan_and_infinity_reach_later_states_of_their_channel_only(scan):
    a, b = np.full((4, 2), 0.5), np.ones((4, 2))
    for special, kind in ((np.nan, 2), (np.inf, 1)):
        b[1, 0] = special
        assert kind_of(scan(a, b)).tolist() == [[0, 0], [kind, 0], [kind, 0], [kind, 0]]


@roles_from
def test_a_scan_from_zero_is_a_scan_from_rest(scan):
    a, b = random(3, (7, 3), (7, 3))
    assert np.array_equal(scan(a, b, np.zeros(3)), linear_scan(a, b))


@roles_from
def test_a_scan_cut_anywhere_goes_on_from_its_last_state(scan):
    a, b, x0 = integers(4, (2, 8, 3), (8, 3), (2, 3))
    x = scan(a, b, x0)
    for k in range(1, 8):
        again = scan(a[..., k:, :], b[k:], x[..., k - 1, :])
        assert np.array_equal(again, x[..., k:, :])


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
def test_the_result_has_the_common_type_of_the_arguments(types):
    a, b = (np.ones((3, 2), t) for t in types)
    x0 = np.ones(2, "float32")
    for scan in SCANS:
        assert scan(a, b).dtype == np.result_type(a, b)
    for scan in SCANS_FROM:
        assert scan(a, b, x0).dtype == np.result_type(a, b)
        assert scan(x0[None], x0[None], x0.astype(types[0])).dtype == np.dtype(types[0])


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
def test_gradients_are_real_where_the_argument_is(types):
    a, b = (np.ones((3, 2), t) for t in types)
    x0 = np.ones(2, types[1])
    for scan, vjp in ((SCANS[0], linear_scan_vjp), (SCANS[1], jit.linear_scan_vjp)):
        gradients = vjp(scan(a, b), a, b)
        assert [g.dtype.kind for g in gradients] == [a.dtype.kind, b.dtype.kind]
    for vjp in (linear_scan_from_vjp, jit.linear_scan_from_vjp):
        gradients = vjp(linear_scan_from(a, b, x0), a, b, x0)
        assert [g.dtype.kind for g in gradients] == [x.dtype.kind for x in (a, b, x0)]


def test_long_double_keeps_its_digits_in_the_references():
    eps = np.finfo(np.longdouble).eps
    a, b = np.ones((3, 1), np.longdouble), np.full((3, 1), eps)
    b[0] = 1
    x = linear_scan(a, b)
    assert x.dtype == np.longdouble
    assert (x[:, 0] - 1).tolist() == [0, eps, 2 * eps]
    assert np.array_equal(linear_scan_from(a[1:], b[1:], b[0]), x[1:])
    assert all(g.dtype == np.longdouble for g in linear_scan_vjp(x, a, b))


SHAPES = [
    ((5, 2), (5, 2), (2,)),
    ((3, 5, 2), (5, 2), (2,)),
    ((5, 2), (3, 5, 2), (1, 2)),
    ((2, 1, 5, 2), (3, 5, 2), (2,)),
    ((5, 2), (5, 2), (4, 1, 2)),
    ((1, 3, 5, 2), (2, 1, 5, 2), (2, 3, 2)),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_leading_axes_broadcast_in_both_roles(shapes, dtype):
    a, b, x0 = random(5, *shapes, dtype=dtype)
    for scan in SCANS:
        assert scan(a, b).shape == (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), 5, 2)
        assert judge(LINEAR_SCAN, scan, a, b).grade == "A"
    for scan in SCANS_FROM:
        assert judge(LINEAR_SCAN_FROM, scan, a, b, x0).grade == "A"


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients_have_the_shapes_of_their_arguments_and_the_roles_agree(shapes):
    a, b, x0 = integers(6, *shapes)
    for forward, reference, mirror, arrays in (
        (linear_scan, linear_scan_vjp, jit.linear_scan_vjp, (a, b)),
        (linear_scan_from, linear_scan_from_vjp, jit.linear_scan_from_vjp, (a, b, x0)),
    ):
        (dx,) = integers(7, forward(*arrays).shape)
        gradients = reference(dx, *arrays)
        assert [g.shape for g in gradients] == [x.shape for x in arrays]
        assert all(map(np.array_equal, gradients, mirror(dx, *arrays)))


@pytest.mark.parametrize("vjp", [linear_scan_vjp, jit.linear_scan_vjp], ids=["reference", "jit"])
def test_the_gradient_of_a_complex_scan_by_hand(vjp):
    a, b, dx = np.array([[7j], [2 + 1j]]), np.array([[1 - 1j], [3.0]]), np.array([[1j], [1 + 2j]])
    da, db = vjp(dx, a, b)
    assert db.ravel().tolist() == [1j + (2 - 1j) * (1 + 2j), 1 + 2j]
    assert da.ravel().tolist() == [0, (1 + 1j) * (1 + 2j)]


@pytest.mark.parametrize(
    "vjp", [linear_scan_from_vjp, jit.linear_scan_from_vjp], ids=["reference", "jit"]
)
def test_the_gradient_from_a_state_by_hand(vjp):
    da, db, dx0 = vjp([[5.0], [11.0]], [[2.0], [3.0]], [[7.0], [13.0]], [17.0])
    assert db.ravel().tolist() == [5 + 3 * 11, 11]
    assert da.ravel().tolist() == [17 * 38, (2 * 17 + 7) * 11]
    assert dx0.tolist() == [2 * 38]


@pytest.mark.parametrize("vjp", [linear_scan_vjp, jit.linear_scan_vjp], ids=["reference", "jit"])
def test_the_first_decay_has_no_gradient_even_where_it_is_nan(vjp):
    a = np.array([[np.nan], [2.0]])
    da, db = vjp(np.ones((2, 1)), a, np.ones((2, 1)))
    assert da.ravel().tolist() == [0, 1]
    assert db.ravel().tolist() == [3, 1]
