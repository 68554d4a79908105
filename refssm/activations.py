"""Functions of single numbers, and gates, with their gradients.

Each VJP takes the cotangent first. Gradients are recomputed from the inputs; nothing is saved.
"""

import numpy as np
from scipy.special import erf as erf_of_doubles

from refssm._numerics.overridable import overridable

_HALF = np.float32(0.5)  # exact; float32 numbers stay float32
_ROOT_HALF, _ROOT_2_PI = np.sqrt(0.5), np.sqrt(2 * np.pi)


def _as(x, number):
    """A constant in the precision of x, without axes: CuPy takes it beside its arrays."""
    return np.finfo(x.dtype).dtype.type(number)


def erf(x):
    """The error function; SciPy's, which has no long double, else a sum.

    erf x = 2/√π e^{−x²} Σ_k 2^k x^{2k+1}/(2k + 1)!!: all terms have one sign, so that nothing
    cancels. Beyond |x| = 7 it is ±1 to 1e-22.
    """
    if x.dtype != np.longdouble:
        return erf_of_doubles(x)
    near = np.clip(x, -7, 7)
    term = total = near
    for k in range(1, 200):  # at |x| = 7 the last term is 1e-40 of the sum
        term = term * (2 * near * near) / (2 * k + 1)
        total = total + term
    pi = 4 * np.arctan(np.ones((), x.dtype))
    return 2 * np.exp(-near * near) * total / np.sqrt(pi)


def gelu(x):
    """x Φ(x), with Φ the distribution function of the normal distribution: exact, not by tanh."""
    return x * (_HALF * (1 + erf(x * _as(x, _ROOT_HALF))))


def gelu_vjp(dy, x):
    """dy (Φ(x) + x φ(x)), φ(x) = e^{−x²/2}/√(2π)."""
    density = np.exp(-_HALF * x * x) / _as(x, _ROOT_2_PI)
    return dy * (_HALF * (1 + erf(x * _as(x, _ROOT_HALF))) + x * density)


def gelu_tanh(x):
    """½ x (1 + tanh(√(2/π) (x + 0.044715 x³))): an approximation that some models use."""
    return _HALF * x * (1 + np.tanh(_inner(x)))


def gelu_tanh_vjp(dy, x):
    """With t = tanh(s): ½ (1 + t) + ½ x (1 − t²) s'."""
    t = np.tanh(_inner(x))
    slope = _as(x, np.sqrt(2 / np.pi)) * (1 + _as(x, 3 * 0.044715) * x * x)
    return dy * (_HALF * (1 + t) + _HALF * x * (1 - t) * (1 + t) * slope)


def _inner(x):
    return _as(x, np.sqrt(2 / np.pi)) * (x + _as(x, 0.044715) * x * x * x)


@overridable
def sigmoid(x):
    """1/(1 + e^{−x}), computed from e^{−|x|}."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def sigmoid_vjp(dy, x):
    """dy σ(x) σ(−x): no difference from 1, so small slopes keep their digits."""
    return dy * sigmoid(x) * sigmoid(-x)


def silu(x):
    """x σ(x)."""
    return x * sigmoid(x)


def silu_vjp(dy, x):
    """dy σ(x) (1 + x σ(−x))."""
    return dy * sigmoid(x) * (1 + x * sigmoid(-x))


def tanh_vjp(dy, x):
    """dy / cosh² x = dy (1 − t)(1 + t)."""
    t = np.tanh(x)
    return dy * (1 - t) * (1 + t)


def softplus(x):
    """log(1 + e^x) = max(x, 0) + log1p(e^{−|x|}): accurate in both tails, no overflow."""
    # log(1 + e^x) directly has no correct digits below −17 in single precision, and overflows above
    # 88
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softplus_vjp(dy, x):
    """dy σ(x)."""
    return dy * sigmoid(x)


def clip(x, low, high):
    """min(max(x, low), high)."""
    return np.minimum(np.maximum(x, low), high)


@overridable
def clip_vjp(dy, x, low, high):
    """dy between the bounds and at them, 0 beyond."""
    return np.where((x < low) | (x > high), 0, dy)  # NaN is not beyond: it stays


def gate(a, b):
    """a σ(b)."""
    return a * sigmoid(b)


def gate_vjp(dy, a, b):
    """dy σ(b) and dy a σ(b) σ(−b)."""
    return dy * sigmoid(b), sigmoid_vjp(dy * a, b)


def glu(x):
    """a σ(b), where a and b are the halves of the last axis."""
    return gate(*np.split(x, 2, axis=-1))


def glu_vjp(dy, x):
    """The gradients of both halves, joined."""
    return np.concatenate(gate_vjp(dy, *np.split(x, 2, axis=-1)), axis=-1)
