"""(A, B) of any measure: by integration by parts and quadrature.

    sliding   x' = A x + B u,     x_i(t) = ∫ u(t − s) p_i(s) ω(s) ds
    scaled    t x' = A x + B u,   x_i(t) = ∫_0^1 u(t(1 − s)) p_i(s) ω(s) ds

    A = D − b eᵀ,   D_ik = −∫ g p_i p_k' ω ds,   b_i = p_i(0) ω(0),   e_k = p_k(0)

with g = 1, and 1 − s for the scaled form. Except at s = 0, the coefficients supply the values of
the input.
"""

import numpy as np

from refssm.hippo.systems import size

_STEP = 1e-40  # added to s times i: p_k' is an imaginary part, without a difference of numbers


def hippo_from_measure(*, n, basis, weight):
    """A = D − b eᵀ, D_ik = −∫ p_i p_k' ω ds, b_i = p_i(0) ω(0), e_k = p_k(0);  B = b.

    Returns A (n,n) and B (n), in double precision. `n` is the number of coefficients. `basis(k, s)`
    is p_k at an array `s` of delays, orthonormal under ω (or 0 everywhere), for k = 0 … n−1. It
    must accept complex s, because p_k' is computed as Im p_k(s + iε)/ε [squire1998complex].
    `weight` is a pair: ω, called with real arrays, and the end of its support [0, end], which may
    be infinity; ω must be smooth inside. The arrays are long double; NumPy's functions keep that
    type, SciPy's special functions do not. The double exponential rule [takahasi1974de] computes
    the integrals, so p_k and ω need not be polynomials.

    Raises ValueError if `n` is not an integer ≥ 1, unless 0 < ω(0) < ∞ and 0 ≤ ω(s) < ∞ before the
    end, if the basis is not orthonormal to half the digits or drops the imaginary part, or if the
    integrals do not converge. Source: [gu2020hippo, App. C].

    >>> import numpy as np
    >>> import refssm
    >>> wave = lambda k, s: [1, np.sqrt(2) * np.cos(2 * np.pi * s)][k]
    >>> A, B = refssm.hippo_from_measure(n=2, basis=wave, weight=(np.ones_like, 1.0))
    >>> A.round(12).tolist(), B.round(12).tolist()
    ([[-1.0, -1.414213562373], [-1.414213562373, -2.0]], [1.0, 1.414213562373])
    """
    return _projected("hippo_from_measure", n, basis, weight, np.ones_like)


def hippo_from_measure_scaled(*, n, basis, weight):
    """A = D − b eᵀ, D_ik = −∫_0^1 (1 − s) p_i p_k' ω ds, b_i = p_i(0) ω(0), e_k = p_k(0);  B = b.

    The measure covers the whole past, and s is a fraction of it: the memory is t x' = A x + B u,
    and A_ik = ∫_0^1 p_k ((1 − s) p_i ω)' ds. Arguments, result and errors are those of
    `hippo_from_measure`; the support is [0, 1]. Source: [gu2020hippo, App. C].

    >>> import numpy as np
    >>> import refssm
    >>> line = lambda k, s: [1, np.sqrt(3) * (1 - 2 * s)][k]
    >>> A, B = refssm.hippo_from_measure_scaled(n=2, basis=line, weight=(np.ones_like, 1.0))
    >>> (A.round(12) + 0.0).tolist(), B.round(12).tolist()
    ([[-1.0, 0.0], [-1.732050807569, -2.0]], [1.0, 1.732050807569])
    """
    if weight[1] != 1:
        raise ValueError(f"hippo_from_measure_scaled: `weight` must end at 1, got {weight[1]!r}")
    return _projected("hippo_from_measure_scaled", n, basis, weight, lambda s: 1 - s)


def _projected(name, n, basis, weight, factor):
    """D − b eᵀ and b; halves the step of the quadrature until D converges."""
    n, (density, end) = size(name, n), weight
    if not end > 0:
        raise ValueError(f"{name}: `weight` must end above 0, got {end!r}")
    zero = np.zeros(1, np.longdouble)
    (start,) = np.broadcast_to(density(zero), 1)
    if not 0 < start < np.inf:
        raise ValueError(f"{name}: `weight` must be positive and finite at 0, got {start!r}")
    e = _derived(name, basis, n, zero)[0][:, 0]
    before = np.full((n, n), np.inf)
    for level in range(4, 10):
        gram, D = _integrals(name, n, basis, (density, end), factor, 2.0**-level)
        scale = np.abs(D).max() + start * (e @ e)
        # a halved step squares the error, so the error of the new D is about the square of the
        # difference
        if np.abs(D - before).max() ** 2 <= np.finfo(np.longdouble).eps * scale**2:
            _refuse_unless_orthonormal(name, gram)
            return (D - start * np.outer(e, e)).astype(float), (start * e).astype(float)
        before = D
    raise ValueError(f"{name}: the integrals of `basis` under `weight` do not converge")


def _integrals(name, n, basis, weight, factor, step):
    """∫ p_i p_k ω ds and −∫ g p_i p_k' ω ds."""
    s, ds = _nodes(weight[1], step)
    mass = weight[0](s) * ds
    if not ((mass >= 0) & (mass < np.inf)).all():
        raise ValueError(f"{name}: `weight` must be finite and not negative inside its support")
    s, mass = s[mass > 0], mass[mass > 0]  # where ω underflows, p may be infinite
    p, slope = _derived(name, basis, n, s)
    return (p * mass) @ p.T, -(p * (mass * factor(s))) @ slope.T


def _nodes(end, step):
    """s and ds of the double exponential rule on [0, end] [takahasi1974de]."""
    if np.isinf(end):
        x = np.arange(-5, 25, step, dtype=np.longdouble)
        s = np.exp(x - np.exp(-x))
        return s, step * s * (1 + np.exp(-x))
    x = np.arange(-4.5, 4.5, step, dtype=np.longdouble)
    E = np.exp(-np.pi * np.sinh(x))
    s, ds = end / (1 + E), step * np.pi * end * np.cosh(x) * E / (1 + E) ** 2
    return s[s < end], ds[s < end]  # ω may be singular at the end


def _derived(name, basis, n, s):
    """p_k and p_k' at `s`, k = 0 … n−1, from one evaluation at s + iε."""
    rows = []
    for k in range(n):
        p = np.asarray(basis(k, s + 1j * np.longdouble(_STEP)))
        if not np.iscomplexobj(p) and p.size > 1 and np.ptp(p):
            raise ValueError(f"{name}: `basis` must keep the imaginary part of s, k={k} is real")
        rows.append(np.broadcast_to(p, s.shape))
    p = np.array(rows, np.clongdouble)
    return p.real, p.imag / np.longdouble(_STEP)


def _refuse_unless_orthonormal(name, gram):
    """ValueError unless the products are I to half the digits: scale mistakes are far larger."""
    off = np.abs(gram - np.diag(np.diag(gram) != 0))
    if not off.max() ** 2 <= np.finfo(float).eps:
        i, k = np.unravel_index(int(np.argmax(off)), off.shape)
        told = f"the product of {i} and {k} is {gram[i, k]:.6g}"
        raise ValueError(f"{name}: `basis` must be orthonormal under `weight`, {told}")
