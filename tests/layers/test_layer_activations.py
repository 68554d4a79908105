"""Functions of single numbers against mpmath, with bounds in roundings."""

import mpmath
import numpy as np
import pytest

from refssm import activations as a

U = 2.0**-53
X = np.array([-30.0, -6.0, -1.5, -0.75, -1e-3, 0.0, 1e-9, 0.25, 1.0, 3.5, 40.0])


def exact(function):
    """The function at X, by mpmath, rounded once."""
    with mpmath.workdps(60):
        return np.array([float(function(mpmath.mpf(x))) for x in X.tolist()])


def slope(function):
    """Its derivative at X, from a difference of 1e-20 in 60 digits: 40 digits are right."""
    with mpmath.workdps(60):
        e = mpmath.mpf(10) ** -20
        points = [mpmath.mpf(x) for x in X.tolist()]
        return np.array([float((function(x + e) - function(x - e)) / (2 * e)) for x in points])


def phi(x):
    return (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2


def gelu(x):
    return x * phi(x)


def gelu_tanh(x):
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x * (1 + mpmath.tanh(inner)) / 2


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softplus(x):
    return mpmath.log1p(mpmath.exp(x))


CASES = {"gelu": gelu, "gelu_tanh": gelu_tanh, "sigmoid": sigmoid, "silu": silu}
# 1 + erf and 1 + tanh of a negative number keep the error of the summand 1: relative to |x|, not to
# the value. Library functions err by at most 4 u (refssm/conformance/gauges/rules.py).
ALLOWED = 16 * U * (1 + np.abs(X))


@pytest.mark.parametrize("name", CASES)
def test_a_function_and_its_slope_are_those_of_its_definition(name):
    function, vjp = getattr(a, name), getattr(a, f"{name}_vjp")
    assert (np.abs(function(X) - exact(CASES[name])) <= ALLOWED).all()
    assert (np.abs(vjp(np.ones_like(X), X) - slope(CASES[name])) <= ALLOWED).all()


def test_the_tanh_form_of_gelu_is_another_function():
    difference = np.abs(a.gelu(X) - a.gelu_tanh(X))
    assert difference.max() > 1e-4  # 4.7e-4 at most, near |x| = 2.7
    assert not (np.abs(a.gelu_tanh(X) - exact(gelu)) <= ALLOWED).all()


def test_softplus_has_its_digits_in_both_tails():
    y = a.softplus(np.array([-700.0, -40.0, 0.0, 40.0, 1000.0]))
    wanted = [np.exp(-700.0), np.exp(-40.0), np.log(2), 40.0, 1000.0]
    assert np.abs(y / wanted - 1).max() <= 8 * U
    assert a.softplus_vjp(2.0, np.float64(0)) == 1


def test_tanh_vjp_does_not_cancel():
    x = np.array([0.5, 18.0])
    with mpmath.workdps(40):
        wanted = [float(mpmath.sech(mpmath.mpf(v)) ** 2) for v in x.tolist()]
    got = a.tanh_vjp(np.ones(2), x)
    assert abs(got[0] / wanted[0] - 1) <= 16 * U
    assert abs(got[1] - wanted[1]) <= 16 * U  # 1 − t has the error of t


def test_glu_gates_the_first_half_by_the_second():
    x = np.array([3.0, -2.0, 0.0, np.log(3.0)])
    assert a.glu(x).tolist() == pytest.approx([1.5, -1.5], rel=8 * U)
    dx = a.glu_vjp(np.array([1.0, 1.0]), x)
    assert dx.tolist() == pytest.approx([0.5, 0.75, 0.75, -2 * 3 / 16], rel=16 * U)


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "sigmoid", "silu", "softplus"])
def test_single_precision_stays_single(name):
    x = X.astype(np.float32)
    assert getattr(a, name)(x).dtype == np.float32
    assert getattr(a, f"{name}_vjp")(x, x).dtype == np.float32
