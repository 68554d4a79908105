"""Error rules of layers: sigmoid functions, and transforms inside a chain of operators."""

import numpy as np
import pytest
from scipy.special import erf, expit

import refssm
from refssm.activations import glu, sigmoid
from refssm.conformance.gauges import gauge, layers
from refssm.conformance.gauges.tracked import FUNCTIONS, UFUNCS, Tracked, tracing
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.hope import HOPE_KERNEL
from refssm.layers._namespaces import (
    cascade_response,
    convolution,
    convolution_vjp,
    shifted,
    shifted_vjp,
)
from refssm.layers._parts.ssm import complexes, reals

U = 2.0**-24


def off_by(value, error):
    return Tracked(value, np.full((*value.shape, 2), error))


@pytest.mark.parametrize("function", [erf, sigmoid], ids=lambda f: f.__name__)
def test_the_slope_of_a_sigmoid_is_the_largest_within_the_error(function):
    x, error = np.array([-6.0, -3.0, 0.0, 2.0, 9.0]), 2.0**24  # u·error = 1
    with tracing(unit=U, floor=0.0):
        y = function(off_by(x, error))
    for moved in (x - 1, x + 1, x - 0.5):
        assert (np.abs(function(moved) - y.value) <= U * y.errors[..., 0]).all()


def test_the_slope_at_the_argument_alone_would_be_too_small():
    x, error = np.array([9.0]), 2.0**24
    slope = expit(x) * expit(-x)
    assert np.abs(expit(x - 1) - expit(x)) > U * slope * error


def test_a_sigmoid_may_be_zero_where_the_exponential_overflows():
    z = np.array([-91.0, -87.0])
    with tracing(unit=U, floor=2.0**-126):
        y = 1e3 * glu(Tracked(np.concatenate([np.ones(2), z])))
    with np.errstate(over="ignore"):
        usual = np.float32(1e3) / (1 + np.exp(-z.astype(np.float32)))
    assert usual[0] == 0 != y.value[0]
    assert (np.abs(usual - y.value) <= U * y.errors[..., 0]).all()
    assert (U * y.errors[1] < 0.01 * y.value[1]).all()  # and only there


def test_constants_made_like_a_tracked_array_are_exact():
    x = Tracked(np.ones((2, 3)))
    made = [np.zeros((2, 3), like=x), np.ones(3, like=x), np.eye(3, like=x)[:2]]
    made += [np.asarray([1.0, 2.0, 3.0], like=x), np.arange(3, like=x)]
    for constant in made:
        assert type(constant) is np.ndarray
        assert not (x + constant - constant).errors[..., 0].max() > 2 * 4  # two sums, of at most 4
    assert np.asarray([1.0], np.float32, like=x).dtype == np.float32


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_a_convolution_by_transforms_in_single_precision_is_within_its_bound():
    u, k = random(3, 200).astype(np.float32), random(200, seed=1).astype(np.float32)
    with tracing(unit=U, floor=0.0):
        y = convolution(Tracked(u.astype(float)), Tracked(k.astype(float)))
    by_transform = np.fft.irfft(np.fft.rfft(u, 400) * np.fft.rfft(k, 400), 400)[..., :200]
    assert by_transform.dtype == np.float32
    assert (np.abs(by_transform - y.value) <= U * y.errors[..., 0]).all()


def test_errors_of_both_arguments_pass_through_a_convolution_as_moduli():
    u, k = np.array([1.0, -2.0, 3.0]), np.array([2.0, 0.5, -1.0])
    with tracing(unit=U, floor=0.0):
        own = convolution(Tracked(u), Tracked(k)).errors
        both = convolution(off_by(u, 1.0), off_by(k, 4.0)).errors - own
    ones, direct = np.ones(3), CAUSAL_CONVOLUTION_DIRECT.reference
    wanted = (direct(ones, np.abs(k)) + direct(np.abs(u), 4 * ones))[:, None]
    # besides, the norms of the computed arguments are larger by their errors, of the order of u
    assert (wanted <= both).all()
    assert (both <= wanted * (1 + 64 * U)).all()


def test_gradients_of_a_convolution_are_convolutions_in_reversed_time():
    dy, u, k = random(2, 9), random(2, 9, seed=1), random(9, seed=2)
    du, dk = convolution_vjp(dy, u, k)
    assert np.allclose((du * u).sum(), (dk * k).sum())
    assert (du.shape, dk.shape) == (u.shape, k.shape)


def test_the_convolution_of_both_ways_is_the_operator_with_tracked_errors_too():
    dy, u, k, kr = random(2, 9), random(2, 9, seed=1), random(2, 9, seed=2), random(2, 9, seed=3)
    assert np.array_equal(shifted(u, k, kr), refssm.bidirectional_convolution_shifted(u, k, kr))
    wanted = refssm.bidirectional_convolution_shifted_vjp(dy, u, k, kr)
    for found, exact in zip(shifted_vjp(dy, u, k, kr), wanted, strict=True):
        assert np.abs(found - exact).max() <= 64 * 2.0**-53 * 9 * 9  # numbers below 3
    with tracing(unit=U, floor=0.0):
        y = shifted(Tracked(u), Tracked(k), off_by(kr, 1.0))
        none = shifted(Tracked(u), Tracked(k), Tracked(kr))
    # an error of 1 in each tap of the future is one in each later input
    later = np.cumsum(np.abs(u[:, :0:-1]), axis=-1)[:, ::-1]
    carried = (y.errors - none.errors)[..., 0]
    assert (carried[:, :-1] >= later).all()
    assert (carried[:, -1] <= 64 * U).all()


def test_the_kernel_of_a_cascade_has_one_bound_for_all_its_entries():
    h, dt = random(3, 8).astype(np.float32), np.array([0.01, 0.1, 1.0], np.float32)
    with tracing(unit=U, floor=0.0):
        K = cascade_response(Tracked(h.astype(float)), Tracked(dt.astype(float)), l=50)
    assert (K.errors == K.errors[..., :1, :]).all()
    single = HOPE_KERNEL.reference(h, dt, l=50)
    assert (np.abs(single - K.value) <= U * K.errors[..., 0]).all()


def test_an_inverse_transform_takes_the_mean_of_the_errors_of_its_nodes():
    z = random(2, 16) + 1j * random(2, 16, seed=1)
    errors = np.abs(random(2, 16, 2))
    with tracing(unit=U, floor=0.0):
        y = np.fft.ifft(Tracked(z, errors))
    own = np.log2(32) * np.linalg.norm(y.value, axis=-1)[:, None, None]
    wanted = own + errors.mean(-2, keepdims=True)
    assert np.allclose(y.errors, np.broadcast_to(wanted, y.errors.shape), rtol=1e-12, atol=0)


def test_halves_of_an_array_keep_their_errors():
    x = random(3, 8)
    halves = np.split(Tracked(x, np.stack([2 * x, 3 * x], -1)), 2, axis=-1)
    parts = np.split(Tracked(x, np.stack([2 * x, 3 * x], -1)), [1, 3], axis=-1)
    for found, plain in ((halves, np.split(x, 2, -1)), (parts, np.split(x, [1, 3], -1))):
        for y, expected in zip(found, plain, strict=True):
            assert np.array_equal(y.value, expected)
            assert np.array_equal(y.errors[..., 1], 3 * expected)


def test_a_diagonal_matrix_has_the_errors_of_its_entries_and_exact_zeros():
    y = np.diag(off_by(np.array([1.0, 2.0]), 5.0))
    assert y.value.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert y.errors[..., 0].tolist() == [[5.0, 0.0], [0.0, 5.0]]


def test_both_parts_of_a_complex_number_have_its_error_and_it_has_the_modulus_of_theirs():
    z = Tracked(np.array([[1 + 2j, 3 - 4j]]), np.array([[[3.0, 6.0], [5.0, 10.0]]]))
    parts = reals(z)
    assert parts.value.tolist() == [[1.0, 2.0, 3.0, -4.0]]
    assert parts.errors[..., 0].tolist() == [[3.0, 3.0, 5.0, 5.0]]
    back = complexes(Tracked(parts.value, np.array([[[3.0, 0.0], [4.0, 0.0]] * 2])))
    assert np.array_equal(back.value, z.value)
    assert back.errors[..., 0].tolist() == [[5.0, 5.0]]


def test_every_rule_of_this_file_is_registered():
    assert gauge.layers is layers  # imported with the judge
    assert erf in UFUNCS
    assert {np.split, np.diag, np.ones_like, np.fft.ifft} <= set(FUNCTIONS)
    assert {convolution, cascade_response, reals, complexes, sigmoid} <= set(FUNCTIONS)
    assert layers.LIBRARY == 4
