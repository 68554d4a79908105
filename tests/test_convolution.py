from itertools import product
from math import comb

import numpy as np
import pytest

import refssm.jit.convolution as jit
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.judging.certificate import adjoint_slip
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import kind_of, worst_of
from refssm.conformance.number_types import judged_type
from refssm.conformance.standard import C
from refssm.convolution import (
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    causal_convolution,
    causal_convolution_direct,
    causal_convolution_direct_vjp,
    causal_convolution_vjp,
)

TYPES = ("float32", "float64", "complex64", "complex128")
ROLES = ["reference", "jit"]
DIRECT = [causal_convolution_direct, jit.causal_convolution_direct]
FAST = [causal_convolution, jit.causal_convolution]
DIRECT_VJPS = [causal_convolution_direct_vjp, jit.causal_convolution_direct_vjp]
FAST_VJPS = [causal_convolution_vjp, jit.causal_convolution_vjp]
FORMS = [(CAUSAL_CONVOLUTION_DIRECT, f, g) for f, g in zip(DIRECT, DIRECT_VJPS, strict=True)]
FORMS += [(CAUSAL_CONVOLUTION, f, g) for f, g in zip(FAST, FAST_VJPS, strict=True)]
IDS = [f"{form}-{role}" for form in ("direct", "fft") for role in ROLES]
forms = pytest.mark.parametrize(("op", "conv"), [form[:2] for form in FORMS], ids=IDS)
forms_vjp = pytest.mark.parametrize(("op", "conv", "vjp"), FORMS, ids=IDS)
direct = pytest.mark.parametrize("conv", DIRECT, ids=ROLES)
direct_vjp = pytest.mark.parametrize("vjp", DIRECT_VJPS, ids=ROLES)
fast = pytest.mark.parametrize("conv", FAST, ids=ROLES)
each_type = pytest.mark.parametrize("dtype", TYPES)


def random(seed, *shapes, dtype="float64"):
    """Random numbers of modulus about 1; complex for a complex dtype."""
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((2, *shape)) for shape in shapes]
    is_complex = np.dtype(dtype).kind == "c"
    return [(p[0] + 1j * p[1] if is_complex else p[0]).astype(dtype) for p in parts]


def integers(seed, *shapes, dtype="float64"):
    """Small random integers, so that the direct sum does not round."""
    rng = np.random.default_rng(seed)
    parts = [rng.integers(-9, 10, (2, *shape)) for shape in shapes]
    is_complex = np.dtype(dtype).kind == "c"
    return [(p[0] + 1j * p[1] if is_complex else p[0]).astype(dtype) for p in parts]


def agree(op, value, wanted, u, k):
    """Equality for the direct sum; for the transform, `value` and `wanted` within its tolerance."""
    if op is CAUSAL_CONVOLUTION_DIRECT:
        return np.array_equal(value, wanted)
    wanted = np.asarray(wanted, judged_type((u, k)))
    return all(judge(op, lambda *_, y=y: y, u, k).ok for y in (value, wanted))


def graded(op, gradients, dy, u, k):
    """The verdict on gradients, by the tolerance of the operator's contract."""
    gauges, common = expect(op, [dy, u, k], {}, op.bare_vjp), judged_type([dy, u, k])
    kinds = [common if np.iscomplexobj(x) else np.finfo(common).dtype for x in (u, k)]
    return worst_of(map(compare, gradients, gauges, kinds))


def impulse(l, place):
    """1 at one place, 0 elsewhere."""
    return (np.arange(l) == place).astype(float)


@forms
def test_the_example_of_the_docstring(op, conv):
    u, k = np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.5, 0.25])
    assert agree(op, conv(u, k), [1.0, 0.5, 2.25], u, k)


@forms
@each_type
def test_an_impulse_gives_the_kernel_and_an_impulse_as_kernel_the_signal(op, conv, dtype):
    (k,) = random(1, (9,), dtype=dtype)
    one = impulse(9, 0).astype(np.finfo(dtype).dtype)
    assert agree(op, conv(one, k), k, one, k)
    assert agree(op, conv(k, one), k, k, one)


@forms
def test_an_impulse_at_a_lag_delays_by_it(op, conv):
    (u,) = random(2, (7,))
    for lag in range(7):
        delayed = np.concatenate([np.zeros(lag), u[: 7 - lag]])
        assert agree(op, conv(u, impulse(7, lag)), delayed, u, impulse(7, lag))


@forms
@each_type
def test_signal_and_kernel_may_be_exchanged(op, conv, dtype):
    u, k = integers(3, (12,), (12,), dtype=dtype)
    assert agree(op, conv(u, k), conv(k, u), u, k)


@forms
@each_type
@pytest.mark.parametrize("l", [1, 2, 3, 7, 8, 13, 16, 31, 64, 97])
def test_integers_of_odd_even_and_prime_lengths_as_numpy_convolves_them(op, conv, l, dtype):
    u, k = integers(l, (l,), (l,), dtype=dtype)
    assert agree(op, conv(u, k), np.convolve(u, k)[:l], u, k)


@forms
def test_powers_of_a_binomial_are_rows_of_the_triangle_of_pascal(op, conv):
    l = 9
    binomial, row = np.eye(l)[0] + np.eye(l)[1], np.eye(l)[0]
    for power in range(1, l):
        before, row = row, conv(row, binomial)
        pascal = np.array([comb(power, i) for i in range(l)], float)
        assert agree(op, row, pascal, before, binomial)


@forms
def test_the_running_sum_of_ones_counts(op, conv):
    ones = np.ones(1000, np.float32)
    y = conv(ones, ones)
    assert y.dtype == np.float32
    assert agree(op, y, np.arange(1, 1001), ones, ones)


@pytest.mark.parametrize("l", [5, 64, 300])
@forms
def test_a_late_impulse_under_a_flat_kernel_leaves_everything_before_at_zero(op, conv, l):
    # a circular convolution of l points would give 1 everywhere
    u, flat = impulse(l, l - 1), np.ones(l)
    assert agree(op, conv(u, flat), u, u, flat)
    assert not judge(op, lambda *_: flat, u, flat).ok


@forms
def test_no_time_and_no_batch(op, conv):
    for shape in ((0,), (2, 0), (0, 4), (0, 0)):
        for dtype in TYPES:
            y = conv(np.ones(shape, dtype), np.ones(shape[-1:], dtype))
            assert (y.shape, y.dtype) == (shape, np.dtype(dtype))
    assert agree(op, conv([3.0], [-2.0]), [-6], np.array([3.0]), np.array([-2.0]))


@pytest.mark.parametrize("types", list(product(TYPES, repeat=2)), ids="-".join)
@forms_vjp
def test_result_and_gradients_have_the_type_and_kind_of_the_arguments(op, conv, vjp, types):
    (u,), (k,) = (random(i, (5,), dtype=dtype) for i, dtype in enumerate(types))
    y = conv(u, k)
    assert y.dtype == np.result_type(u, k)
    gradients = vjp(y, u, k)
    assert [g.dtype.kind for g in gradients] == [u.dtype.kind, k.dtype.kind]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(y.dtype).dtype}


@forms
def test_a_complex_signal_beside_a_real_kernel_is_two_real_signals(op, conv):
    (u,), (k,) = integers(4, (10,), dtype="complex128"), integers(5, (10,))
    parts = conv(u.real, k) + 1j * conv(u.imag, k)
    assert agree(op, conv(u, k), parts, u, k)


def test_long_double_keeps_its_digits_in_the_references():
    eps, one = np.finfo(np.longdouble).eps, np.ones(2, np.longdouble)
    y = causal_convolution_direct(one, one + eps)
    assert (y - [1, 2]).tolist() == [eps, 2 * eps]
    for conv, vjp in ((DIRECT[0], DIRECT_VJPS[0]), (FAST[0], FAST_VJPS[0])):
        assert conv(one, one).dtype == np.longdouble
        assert [g.dtype for g in vjp(one, one, one)] == [np.longdouble] * 2
    u, k = random(6, (33,), (33,), dtype="longdouble")
    assert judge(CAUSAL_CONVOLUTION, causal_convolution, u, k).ok


@pytest.mark.parametrize("conv", [DIRECT[1], FAST[1]], ids=["direct", "fft"])
def test_the_mirrors_refuse_long_double(conv):
    with pytest.raises(TypeError, match=r"^causal_convolution(_direct)?: `k` has dtype"):
        conv([1.0], np.ones(1, np.longdouble))


@forms
def test_lengths_that_disagree_are_told(op, conv):
    with pytest.raises(ValueError, match=f"^{op}: `k` has l=1, but earlier arguments have l=3"):
        conv(np.ones(3), np.ones(1))


@direct
@each_type
def test_nan_reaches_later_outputs_of_its_member_only(conv, dtype):
    u, k = np.ones((2, 5), dtype), np.ones((2, 5), dtype)
    u[0, 3] = np.nan
    assert kind_of(conv(u, k)).tolist() == [[0, 0, 0, 2, 2], [0] * 5]
    u[0, 3], k[1, 2] = 1, np.nan
    assert kind_of(conv(u, k)).tolist() == [[0] * 5, [0, 0, 2, 2, 2]]


@direct
def test_infinity_reaches_later_outputs_and_is_nan_where_it_meets_zero(conv):
    u, k = [1.0, -np.inf, 1.0, 1.0], [2.0, 1.0, 0.0, 1.0]
    assert kind_of(conv(u, k)).tolist() == [0, 1, 1, 2]
    assert conv(u, k)[1] == -np.inf


@fast
@each_type
def test_nan_spreads_over_the_whole_of_a_transform_and_no_other(conv, dtype):
    u, k = np.ones((2, 5), dtype), np.ones((2, 5), dtype)
    u[0, 3] = np.nan
    assert kind_of(conv(u, k)).tolist() == [[2] * 5, [0] * 5]


@each_type
def test_small_entries_keep_their_digits_in_the_sum_and_lose_them_in_a_transform(dtype):
    l = 64
    fading = (1e-30 ** (np.arange(l) / l)).astype(dtype)
    for conv in DIRECT:
        assert judge(CAUSAL_CONVOLUTION_DIRECT, conv, fading, fading).grade == "A"
    for conv in FAST:
        assert judge(CAUSAL_CONVOLUTION, conv, fading, fading).grade == "A"
        assert judge(CAUSAL_CONVOLUTION_DIRECT, conv, fading, fading).grade == "F"


SHAPES = [((5,), (5,)), ((2, 5), (5,)), ((5,), (3, 1, 5)), ((2, 1, 5), (3, 5)), ((4, 5), (1, 5))]


@forms
@each_type
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_leading_axes_broadcast(op, conv, shapes, dtype):
    u, k = random(7, *shapes, dtype=dtype)
    assert conv(u, k).shape == np.broadcast_shapes(*shapes)
    assert judge(op, conv, u, k).grade == "A"


@forms_vjp
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gradients_have_the_shapes_of_their_arguments(op, conv, vjp, shapes):
    u, k = random(8, *shapes)
    dy = conv(u, k)
    gradients = vjp(dy, u, k)
    assert [g.shape for g in gradients] == list(shapes)
    assert graded(op, gradients, dy, u, k).ok


@forms_vjp
def test_the_gradient_by_hand(op, conv, vjp):
    dy, u, k = np.array([7.0, 11.0]), np.array([1.0, 2.0]), np.array([3.0, 5j])
    du, dk = np.array([3 * 7, 3 * 11.0]), np.array([7 + 2 * 11, 11 + 0j])
    assert graded(op, (du, dk), dy, u, k).ok
    assert graded(op, vjp(dy, u, k), dy, u, k).ok
    du, dk = np.array([21 - 5j * 11, 33]), np.array([7 + (2 - 1j) * 11, 11])
    u = np.array([1, 2 + 1j])
    assert graded(op, (du, dk), dy, u, k).ok
    assert graded(op, vjp(dy, u, k), dy, u, k).ok


@forms_vjp
def test_the_gradients_are_the_oracles(op, conv, vjp):
    for real in ((), ("u",), ("k",)):
        assert adjoint_slip(op, vjp, ordinary_case(op, "complex128", sizes=(9,), real=real)) <= C


@direct_vjp
def test_the_gradient_of_a_shared_kernel_is_the_sum_over_the_batch(vjp):
    dy, u, k = integers(9, (3, 2, 6), (3, 2, 6), (2, 6))
    du, dk = vjp(dy, u, k)
    alone = [vjp(dy[i], u[i], k) for i in range(3)]
    assert np.array_equal(du, [one[0] for one in alone])
    assert np.array_equal(dk, sum(one[1] for one in alone))


@pytest.mark.parametrize("vjp", FAST_VJPS, ids=ROLES)
def test_the_gradient_of_a_kernel_shared_by_transforms_is_the_sum_over_the_batch(vjp):
    dy, u, k = integers(9, (3, 2, 6), (3, 2, 6), (2, 6))
    alone = [vjp(dy[i], u[i], k) for i in range(3)]
    joined = np.array([one[0] for one in alone]), sum(one[1] for one in alone)
    for gradients in (joined, vjp(dy, u, k), causal_convolution_direct_vjp(dy, u, k)):
        assert graded(CAUSAL_CONVOLUTION, gradients, dy, u, k).ok
