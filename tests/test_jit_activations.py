"""Mirrors of activations and norms: each within a few roundings of exact values."""

import mpmath
import numpy as np
import pytest
from mpmath import mp

from refssm import activations as plain
from refssm import norms as norms_
from refssm.jit import activations, norms
from refssm.jit._vectors.exponential import CENTRE
from refssm.jit._vectors.formula import NUMBERS

TYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
ROUNDINGS = 16  # of an exponential, a division, a polynomial and some products


def grid(dtype):
    """Numbers of all sizes and both signs, as rows."""
    draw = np.random.default_rng(0)
    x = np.concatenate([draw.uniform(-14, 14, 300), 10.0 ** draw.uniform(-30, 1, 100), [0.0]])
    return np.concatenate([x, -x]).astype(dtype).reshape(2, -1)


def exact(function, x):
    """The function of each number by mpmath, as long doubles."""
    with mp.workdps(40):
        found = [mpmath.nstr(function(mp.mpf(float(v))), 30) for v in x.ravel()]
    return np.array(found, dtype=np.longdouble).reshape(x.shape)


def phi(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


CASES = {
    "gelu": lambda x: x * mp.ncdf(x),
    "silu": lambda x: x / (1 + mp.exp(-x)),
}
SLOPES = {
    "gelu": lambda x: mp.ncdf(x) + x * phi(x),
    "silu": lambda x: (1 + x / (1 + mp.exp(x))) / (1 + mp.exp(-x)),
}


def sizes(name, x):
    """What the roundings of a slope are roundings of: the moduli of its two terms."""
    first = {"gelu": mp.ncdf, "silu": lambda v: 1 / (1 + mp.exp(-v))}[name]
    second = {
        "gelu": lambda v: abs(v) * phi(v),
        "silu": lambda v: abs(v) / (2 + mp.exp(v) + mp.exp(-v)),
    }[name]
    return exact(lambda v: first(v) + second(v), x)


def unit(x):
    return float(np.finfo(x.dtype).eps) / 2


@TYPES
@pytest.mark.parametrize("name", CASES)
def test_a_value_is_exact_but_for_its_roundings(name, dtype):
    x = grid(dtype)
    wanted, found = exact(CASES[name], x), getattr(activations, name)(x)
    bound = (ROUNDINGS + x.astype(np.longdouble) ** 2) * unit(x) * abs(wanted)
    assert (abs(found - wanted) <= bound + np.finfo(dtype).tiny).all()


@TYPES
@pytest.mark.parametrize("name", SLOPES)
def test_a_gradient_is_exact_but_for_its_roundings(name, dtype):
    x = grid(dtype)
    dy = np.random.default_rng(1).standard_normal(x.shape).astype(dtype)
    found = getattr(activations, f"{name}_vjp")(dy, x)
    wanted = dy * exact(SLOPES[name], x)
    bound = (ROUNDINGS + x.astype(np.longdouble) ** 2) * unit(x) * abs(dy) * sizes(name, x)
    assert (abs(found - wanted) <= bound + np.finfo(dtype).tiny).all()


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_mills_ratio_is_a_polynomial_but_for_one_rounding_of_each_coefficient(number):
    s = np.linspace(-1, 0.999, 400)
    u = 2.0 ** -(number.fraction + 1)
    with mp.workdps(40):
        for x in map(mp.mpf, s):
            z = CENTRE * (1 + x) / (1 - x)
            if mp.ncdf(-z) > 2.0 ** (1 - number.bias - number.fraction):  # beyond, it is 0
                wanted = mp.ncdf(-z) / phi(z)
                found = (1 - x) * mp.fsum(c * x**j for j, c in enumerate(number.mills))
                rounded = (1 - x) * mp.fsum(
                    abs(c) * abs(x) ** j for j, c in enumerate(number.mills)
                )
                assert abs(found - wanted) <= u * (wanted + rounded)


@TYPES
def test_special_numbers_pass_through(dtype):
    x = np.array([np.nan, np.inf, 0.0, -0.0], dtype)
    with np.errstate(all="ignore"):
        assert np.array_equal(activations.gelu(x), plain.gelu(x), equal_nan=True)
        assert np.array_equal(activations.silu(x), plain.silu(x), equal_nan=True)


@TYPES
def test_rows_with_gaps_have_the_same_results(dtype):
    x = grid(dtype)
    wide = np.repeat(x, 2, axis=-1)[:, ::2]
    assert wide.strides[-1] != x.strides[-1]
    assert np.array_equal(activations.gelu(wide), activations.gelu(x))
    assert np.array_equal(activations.gate_vjp(wide, x, wide), activations.gate_vjp(x, x, x))


@TYPES
def test_a_gate_is_a_product_with_a_sigmoid(dtype):
    draw = np.random.default_rng(2).standard_normal
    dy, a, b = (draw((3, 40)).astype(dtype) for _ in range(3))
    u = unit(dy)
    open_ = plain.sigmoid(b.astype(np.longdouble))
    assert (abs(activations.gate(a, b) - a * open_) <= 8 * u * abs(a)).all()
    da, db = activations.gate_vjp(dy, a, b)
    assert (abs(da - dy * open_) <= 8 * u * abs(dy)).all()
    assert (abs(db - dy * a * open_ * (1 - open_)) <= 16 * u * abs(dy * a)).all()


@TYPES
@pytest.mark.parametrize("shape", [(5,), (1, 1), (4, 33), (2, 3, 128)])
def test_the_norm_of_a_row_and_its_gradient(shape, dtype):
    draw = np.random.default_rng(3).standard_normal
    x, dy, scale, shift = (draw(s).astype(dtype) for s in (shape, shape, shape[-1:], shape[-1:]))
    wide = [a.astype(np.longdouble) for a in (x, dy, scale, shift)]
    found = norms.layer_norm(x, scale, shift), *norms.layer_norm_vjp(dy, x, scale)
    exact_ = (
        norms_.layer_norm(wide[0], *wide[2:]),
        *norms_.layer_norm_vjp(wide[1], wide[0], wide[2]),
    )
    n, rows = shape[-1], max(1, x.size // shape[-1])
    # sums of n (or of rows, in double precision) terms; centring and the rate have few roundings
    rate = 1 / np.sqrt(np.var(wide[0], axis=-1).min() + norms_.EPSILON)
    size = (1 + float(rate)) * float(abs(scale).max() + abs(dy).max() * (1 + abs(scale).max()))
    for ours, theirs in zip(found, exact_, strict=True):
        assert ours.dtype == dtype
        assert abs(ours - theirs).max() <= (n + 16) * rows * unit(x) * size * (1 + abs(x).max())


def test_the_norm_of_an_empty_signal_has_gradients_of_zero():
    x, scale = np.empty((3, 0, 4), np.float32), np.ones(4, np.float32)
    assert norms.layer_norm(x, scale, scale).shape == x.shape
    dx, dscale, dshift = norms.layer_norm_vjp(x, x, scale)
    assert dx.shape == x.shape
    assert not dscale.any()
    assert not dshift.any()
