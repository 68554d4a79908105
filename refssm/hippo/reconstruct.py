"""Reconstruction: the past signal from the states of a memory.

    u(t − s) ≈ Σ_i c_i p_i(s)

`s` is the delay, in the time unit of A; for LegS, a fraction of the elapsed time. p is the basis of
the measure, from the recurrence of its polynomials.
"""

from functools import partial

import numpy as np
from scipy.special import gamma

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.contraction import einsum
from refssm._numerics.polynomials import laguerre, laguerre_slopes, legendre, legendre_slopes
from refssm.domains import (
    delays,
    exponents_of_laguerre,
    fading_rates,
    fractions,
    long_windows,
    memories,
)

# what all bases have
_basis = partial(
    Operator,
    signature="(n),(l)->(l)",
    inputs={"c": memories, "s": fractions},
    batch="d, d",
    traits=frozenset({"linear:c"}),
    lacks=frozenset({"jit"}),
)


def _sum(c, p):
    """Σ_n c_n p_ln."""
    return einsum("...n,...ln->...l", c, p)


def _gradients(dy, c, s, p, slopes):
    """dc_n = Σ_l p_ln* dy_l,  ds_l = Re dy_l (Σ_n c_n p'_ln)*."""
    dc, ds = einsum("...l,...ln->...n", dy, p), dy * _sum(c, slopes).conj()
    return unbroadcast(dc, c), unbroadcast(ds, s)


def _roots(c):
    """√(2i + 1), the factor that makes Legendre polynomials orthonormal."""
    return np.sqrt(2 * np.arange(c.shape[-1], dtype=np.finfo(c.dtype).dtype) + 1)


def hippo_reconstruct_legs(c, s):
    """y_l = Σ_i c_i √(2i+1) P_i(1 − 2s_l): the signal a fraction s of its length ago.

    Signature ``(n),(l)->(l)``: `c` the states of a LegS memory, `s` the fraction of the elapsed
    time, 0 now and 1 at the start, real; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result has ``np.result_type(c, s)``. Units: those of
    `c`. `s` outside [0, 1] extrapolates the polynomials.

    Raises ValueError if sizes disagree, TypeError for other types. NaN in `c` reaches every entry,
    NaN in `s` its own. Source: [gu2020hippo].

    >>> import refssm
    >>> c = refssm.hippo_project_legs([1.0, 3.0], n=1)
    >>> refssm.hippo_reconstruct_legs(c[-1], [0.0, 0.5, 1.0])  # one coefficient: the mean
    array([2., 2., 2.])
    """
    return _sum(_roots(c) * c, legendre(1 - 2 * s, c.shape[-1]))


def hippo_reconstruct_legs_vjp(dy, c, s):
    """With P_i(1 − 2s): dc_i = √(2i+1) Σ_l P_i dy_l,  ds_l = −2 Re dy_l (Σ_i c_i √(2i+1) P_i')*.

    Returns `(dc, ds)`, shaped like `c` and `s`.
    """
    P = legendre(1 - 2 * s, c.shape[-1])
    return _gradients(dy, c, s, _roots(c) * P, -2 * (_roots(c) * legendre_slopes(P)))


HIPPO_RECONSTRUCT_LEGS = _basis(
    reference=hippo_reconstruct_legs,
    citation="gu2020hippo",
    tags=("HiPPO_LegS reconstruct", "evaluate Legendre series"),
)
hippo_reconstruct_legs = HIPPO_RECONSTRUCT_LEGS.checked(hippo_reconstruct_legs)
hippo_reconstruct_legs_vjp = HIPPO_RECONSTRUCT_LEGS.checked_vjp(hippo_reconstruct_legs_vjp)


def hippo_reconstruct_legt(c, s, *, window=1.0):
    """y_l = Σ_i c_i √(2i+1) P_i(1 − 2s_l/w): the signal a time s ago, w the window.

    Signature ``(n),(l)->(l)``: `c` the states of a LegT memory, `s` the delay, real, from 0 to
    `window`, which is a number above 0. `s` and `window` have the same unit. All else is as in
    `hippo_reconstruct_legs`. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_reconstruct_legt([2.0, 0.0, 0.0], [0.0, 1.5], window=2.0)
    array([2., 2.])
    """
    return _sum(_roots(c) * c, legendre(1 - 2 * (s / window), c.shape[-1]))


def hippo_reconstruct_legt_vjp(dy, c, s, *, window=1.0):
    """As for LegS, with s/w for s: dc_i = √(2i+1) Σ_l P_i dy_l,  ds_l = −2/w Re dy_l (…P_i')*.

    Returns `(dc, ds)`, shaped like `c` and `s`.
    """
    P = legendre(1 - 2 * (s / window), c.shape[-1])
    slopes = _roots(c) * legendre_slopes(P)
    return _gradients(dy, c, s, _roots(c) * P, slopes * -2 / window)


HIPPO_RECONSTRUCT_LEGT = _basis(
    reference=hippo_reconstruct_legt,
    parameters={"window": long_windows},
    citation="gu2020hippo",
    tags=("HiPPO_LegT reconstruct",),
)
hippo_reconstruct_legt = HIPPO_RECONSTRUCT_LEGT.checked(hippo_reconstruct_legt)
hippo_reconstruct_legt_vjp = HIPPO_RECONSTRUCT_LEGT.checked_vjp(hippo_reconstruct_legt_vjp)


def hippo_reconstruct_lmu(c, s, *, window=1.0):
    """y_l = Σ_i c_i P_i(2s_l/w − 1): the signal a time s ago, from a Legendre memory unit.

    Signature ``(n),(l)->(l)``: `c` the states of an LMU memory, (−1)^i √(2i+1) times those of LegT.
    All else is as in `hippo_reconstruct_legt`. Source: [voelker2019lmu].

    >>> import refssm
    >>> refssm.hippo_reconstruct_lmu([0.0, 1.0], [0.0, 0.5, 1.0])
    array([-1.,  0.,  1.])
    """
    return _sum(c, legendre(2 * (s / window) - 1, c.shape[-1]))


def hippo_reconstruct_lmu_vjp(dy, c, s, *, window=1.0):
    """With P_i(2s/w − 1): dc_i = Σ_l P_i dy_l,  ds_l = 2/w Re dy_l (Σ_i c_i P_i')*.

    Returns `(dc, ds)`, shaped like `c` and `s`.
    """
    P = legendre(2 * (s / window) - 1, c.shape[-1])
    return _gradients(dy, c, s, P, legendre_slopes(P) * 2 / window)


HIPPO_RECONSTRUCT_LMU = _basis(
    reference=hippo_reconstruct_lmu,
    parameters={"window": long_windows},
    citation="voelker2019lmu",
    tags=("LMU decode delayed signal", "Legendre delay decoder"),
)
hippo_reconstruct_lmu = HIPPO_RECONSTRUCT_LMU.checked(hippo_reconstruct_lmu)
hippo_reconstruct_lmu_vjp = HIPPO_RECONSTRUCT_LMU.checked_vjp(hippo_reconstruct_lmu_vjp)


def hippo_reconstruct_lagt(c, s, *, alpha=0.0, beta=1.0):
    """y_l = √(Γ(1−α) β^(α−1)) s_l^α e^{−(1−β) s_l/2} Σ_i c_i L_i^(α)(s_l) √(i!/Γ(i+α+1)).

    Signature ``(n),(l)->(l)``: `c` the states of a LagT memory, `s` the delay, real and not
    negative; `alpha` between −1 and 1 and `beta` above 0 are those of the memory. At s = 0 the
    result is 0 for α > 0 and infinite for α < 0. Only for α = 0 and β = 1 can polynomials be
    reconstructed. All else is as in `hippo_reconstruct_legs`. Source: [gu2020hippo].

    >>> import refssm
    >>> refssm.hippo_reconstruct_lagt([2.0, 1.0], [0.0, 1.0, 3.0])
    array([3., 2., 0.])
    """
    p, _ = _laguerre_functions(c, s, alpha, beta)
    return _sum(c, p)


def _laguerre_functions(c, s, alpha, beta):
    """The basis and its derivative with respect to s."""
    real, n = np.finfo(c.dtype).dtype, c.shape[-1]
    i = np.arange(1, n, dtype=real)
    squares = np.cumprod(np.concatenate([np.ones(1, real), 1 + alpha / i]))[
        :n
    ]  # Γ(i+α+1)/i!/Γ(1+α)
    size = np.sqrt(real.type(gamma(1 - alpha) / gamma(1 + alpha) * beta ** (alpha - 1)) / squares)
    L = laguerre(s, n, alpha)
    if alpha == 0 and beta == 1:
        return size * L, size * laguerre_slopes(L)
    weight = np.exp((beta - 1) / 2 * s)
    rate = np.zeros_like(s) + (beta - 1) / 2  # derivative of log weight
    if alpha:
        weight, rate = weight * np.exp(alpha * np.log(s)), rate + alpha / s
    p = weight[..., None] * (size * L)
    return p, rate[..., None] * p + weight[..., None] * (size * laguerre_slopes(L))


def hippo_reconstruct_lagt_vjp(dy, c, s, *, alpha=0.0, beta=1.0):
    """With p the basis: dc_i = Σ_l p_i dy_l,  ds_l = Re dy_l (Σ_i c_i p_i')*,  L_i' = −Σ_{k<i} L_k.

    Returns `(dc, ds)`, shaped like `c` and `s`.
    """
    return _gradients(dy, c, s, *_laguerre_functions(c, s, alpha, beta))


HIPPO_RECONSTRUCT_LAGT = _basis(
    reference=hippo_reconstruct_lagt,
    inputs={"c": memories, "s": delays},
    parameters={"alpha": exponents_of_laguerre, "beta": fading_rates},
    citation="gu2020hippo",
    tags=("LagT reconstruct Laguerre series",),
)
hippo_reconstruct_lagt = HIPPO_RECONSTRUCT_LAGT.checked(hippo_reconstruct_lagt)
hippo_reconstruct_lagt_vjp = HIPPO_RECONSTRUCT_LAGT.checked_vjp(hippo_reconstruct_lagt_vjp)


def hippo_reconstruct_fourier(c, s, *, window=1.0):
    """y_l = c_0 + √2 Σ_{k>0} (c_{2k} cos(2πk s_l/w) + c_{2k+1} sin(2πk s_l/w)).

    Signature ``(n),(l)->(l)``: `c` the states of a Fourier memory, either variant, `s` the delay,
    real, `window` its window w, above 0. c_1 multiplies sin 0 = 0; for odd n the last sine is
    missing. All else is as in `hippo_reconstruct_legs`. Source: [gu2023train].

    >>> import refssm
    >>> refssm.hippo_reconstruct_fourier([3.0, 7.0], [0.0, 0.25])
    array([3., 3.])
    """
    return _sum(c, _waves(c, s, window)[0])


def _waves(c, s, window):
    """1, 0, √2 cos θ, √2 sin θ, √2 cos 2θ, … and the derivatives with respect to s."""
    n, real = c.shape[-1], np.finfo(c.dtype).dtype
    i = np.arange(n)
    size = np.sqrt(np.where(i > 1, 2, 1).astype(real))
    rate = 8 * np.arctan(real.type(1)) * (i // 2).astype(real)  # 2πk
    phase = (s / window)[..., None] * rate
    cosine, sine = size * np.cos(phase), size * np.sin(phase)
    even = i % 2 == 0
    slopes = rate * np.where(even, -sine, cosine) / window
    return np.where(even, cosine, sine), slopes


def hippo_reconstruct_fourier_vjp(dy, c, s, *, window=1.0):
    """With θ = 2πs/w: dc_2k = √2 Σ_l cos(kθ_l) dy_l, and sines,  ds_l = Re dy_l (∂y_l/∂s_l)*.

    Returns `(dc, ds)`, shaped like `c` and `s`.
    """
    return _gradients(dy, c, s, *_waves(c, s, window))


HIPPO_RECONSTRUCT_FOURIER = _basis(
    reference=hippo_reconstruct_fourier,
    parameters={"window": long_windows},
    citation="gu2023train",
    tags=("FouT reconstruct Fourier series",),
)
hippo_reconstruct_fourier = HIPPO_RECONSTRUCT_FOURIER.checked(hippo_reconstruct_fourier)
hippo_reconstruct_fourier_vjp = HIPPO_RECONSTRUCT_FOURIER.checked_vjp(hippo_reconstruct_fourier_vjp)
