"""HiPPO systems (A, B) in closed form, and the same memory with rescaled states.

Legendre polynomials: the whole past, and a sliding window in two scalings.

    legs   t x' = A x + B u    ω uniform on [0, t]
    legt     x' = A x + B u    ω uniform on [t − w, t]
    lmu      x' = A x + B u    the same window, another scale of the polynomials

from [gu2020hippo] and [voelker2019lmu]; `docs/operators/hippo.md` derives them.

Generalised Laguerre polynomials: a fading memory without an end.

    ω(s) ∝ s^{−α} e^{−βs},   s = time ago

Coefficients of `L_i^{(α)}(s) s^α e^{−(1−β)s/2} / L_i`, orthonormal under ω up to its total mass
[gu2020hippo, App. D.2]; α shapes the weight at s = 0, β is the rate of forgetting.

Chebyshev polynomials, tilted to a uniform weight, up to the end of the window.

    x_i = 2√2/(πw) ∫_0^w u(t−s) T̃_i(1 − 2s/w) ds,   T̃_0 = 1, T̃_i = √2 T_i

for signals that start at t = 0, with t ≤ w [gu2020hippo, App. D.5]. No sliding form exists:
the Chebyshev weight is infinite at both ends.

A Fourier basis: a sliding window of length w, uniform weight.

    1, 0, √2 cos(2πs/w), √2 sin(2πs/w), √2 cos(4πs/w), …    s = time ago

Entry 1 is the sine of frequency 0: a state that stays 0, so that cosines have even indices and
sines odd ones. `S` rotates each pair at 2πk/w, `b` are the values at s = 0. The three variants
differ at the far end of the window [gu2020hippo, gu2023train].
"""

from functools import partial

import numpy as np
from scipy.special import gamma

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import (
    even_orders,
    input_vectors,
    laguerre_decays,
    laguerre_exponents,
    matrices,
    orders,
    scales,
    windows,
)

# what all measures have
_measure = partial(
    Operator,
    signature="->(n,n),(n)",
    inputs={},
    outputs=("A", "B"),
    lacks=frozenset({"vjp", "jit", "gpu"}),  # runs once: no mirror needed
)


def rows_and_columns(n):
    """i as a column and k as a row, as floating-point numbers in double precision."""
    k = np.arange(n, dtype=np.float64)
    return k[:, None], k


def alternating(power):
    """(−1)^power."""
    return np.where(power % 2, -1.0, 1.0)


def size(name, n) -> int:
    """`n` for a function without a declaration; ValueError with `name` for an invalid size."""
    if not orders.admits(n):
        raise ValueError(f"{name}: `n` must be {orders.wanted}, got {n!r}")
    return int(n)


def hippo_legs(*, n):
    """A_ik = −√((2i+1)(2k+1)) below the diagonal, −(i+1) on it, 0 above;  B_i = √(2i+1).

    Signature ``->(n,n),(n)`` and the keyword `n`, the number of coefficients. In double precision.
    The memory of the whole past is `t x' = A x + B u`; S4 uses `x' = A x + B u`, whose measure
    decays exponentially. The eigenvalues are −1 … −n. Units: none.

    Raises ValueError if `n` is not an integer ≥ 1. Source: [gu2020hippo, App. D.3].

    >>> import refssm
    >>> A, B = refssm.hippo_legs(n=3)
    >>> (A**2).round(12).tolist(), (B**2).round(12).tolist()
    ([[1.0, 0.0, 0.0], [3.0, 4.0, 0.0], [5.0, 15.0, 9.0]], [1.0, 3.0, 5.0])
    """
    i, k = rows_and_columns(n)
    below = -np.sqrt((2 * i + 1) * (2 * k + 1))
    A = np.where(i > k, below, np.where(i == k, -(i + 1), 0.0))
    return A, np.sqrt(2 * k + 1)


HIPPO_LEGS = _measure(
    reference=hippo_legs,
    parameters={"n": orders},
    citation="gu2020hippo, App. D.3",
    tags=("HiPPO-LegS", "make_HiPPO", "scaled Legendre measure", "HiPPO_LegS"),
)
hippo_legs = HIPPO_LEGS.checked(hippo_legs)


def hippo_legt(*, n, window=1.0):
    """A_ik = −√((2i+1)(2k+1))/w, times (−1)^{i−k} above the diagonal;  B_i = √(2i+1)/w.

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, and `window`, the
    length w of the window. In double precision. The coefficients approximate the signal at the far
    end of the window. Units: `A` and `B` that of 1/w.

    Raises ValueError if `n` is not an integer ≥ 1 or `window` is not a number above 0. Source:
    [gu2020hippo, App. D.1].

    >>> import refssm
    >>> A, B = refssm.hippo_legt(n=2, window=0.5)
    >>> (A * abs(A)).round(12).tolist(), (B**2).round(12).tolist()
    ([[-4.0, 12.0], [-12.0, -36.0]], [4.0, 12.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    size = np.sqrt((2 * i + 1) * (2 * k + 1)) / w
    A = -np.where(i < k, alternating(i - k), 1.0) * size
    return A, np.sqrt(2 * k + 1) / w


HIPPO_LEGT = _measure(
    reference=hippo_legt,
    parameters={"n": orders, "window": windows},
    citation="gu2020hippo, App. D.1",
    tags=("HiPPO-LegT", "translated Legendre sliding window", "HiPPO_LegT"),
)
hippo_legt = HIPPO_LEGT.checked(hippo_legt)


def hippo_lmu(*, n, window=1.0):
    """A_ik = −(2i+1)/w above the diagonal, (2i+1)(−1)^{i−k+1}/w elsewhere;  B_i = (−1)^i (2i+1)/w.

    Signature ``->(n,n),(n)`` and the keywords `n` and `window`, as `hippo_legt`. The two are
    similar: T A T⁻¹ and T B with T = diag((−1)^i √(2i+1)). In double precision. Units and errors
    are those of `hippo_legt`. Source: [voelker2019lmu].

    >>> import refssm
    >>> A, B = refssm.hippo_lmu(n=2, window=0.5)
    >>> A.tolist(), B.tolist()
    ([[-2.0, -2.0], [6.0, -6.0]], [2.0, -6.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    A = (2 * i + 1) / w * np.where(i < k, -1.0, alternating(i - k + 1))
    return A, alternating(k) * ((2 * k + 1) / w)


HIPPO_LMU = _measure(
    reference=hippo_lmu,
    parameters={"n": orders, "window": windows},
    citation="voelker2019lmu",
    tags=("Legendre memory unit", "LMU", "keras-lmu"),
)
hippo_lmu = HIPPO_LMU.checked(hippo_lmu)


def hippo_lagt(*, n, alpha=0.0, beta=1.0):
    """A = L⁻¹ A₀ L, A₀ is −(1+β)/2 on and −1 below the diagonal;  B_i = C(i+α, i) g / L_i.

    g = β^{(1−α)/2} / √Γ(1−α), L = diag √(Γ(i+α+1)/i!). Signature ``->(n,n),(n)`` and the keywords
    `n`, the number of coefficients, `alpha` between −1 and 1 and `beta` above 0. In double
    precision. For α = 0, B = √β; for α = 0 and β = 1 A is −1 on and below the diagonal and B = 1.
    Units: `A` and `B` that of β.

    Raises ValueError if `n` is not an integer ≥ 1, or `alpha` or `beta` is out of bounds. Source:
    [gu2020hippo, App. D.2].

    >>> import refssm
    >>> A, B = refssm.hippo_lagt(n=3)
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0, 0.0], [-1.0, -1.0, 0.0], [-1.0, -1.0, -1.0]], [1.0, 1.0, 1.0])
    """
    (i, k), alpha, beta = rows_and_columns(n), float(alpha), float(beta)
    r = _binomials(n, alpha)  # L_i² = Γ(1+α) r_i
    A = np.where(i > k, -np.sqrt(r / r[:, None]), np.where(i == k, -(1 + beta) / 2, 0.0))
    B = np.sqrt(r / (gamma(1 - alpha) * gamma(1 + alpha))) * beta ** ((1 - alpha) / 2)
    return A, B


def _binomials(n, alpha):
    """C(i+α, i) = Π_{j≤i} (j + α)/j, each rounded once, because the product uses integers.

    Rounded factors would have an error of i·u, exponentials of logarithms of Γ(i) one of log
    Γ(i)·u.
    """
    p, q = alpha.as_integer_ratio()
    over, under, r = 1, 1, [1.0]
    for j in range(1, n):
        over, under = over * (j * q + p), under * (j * q)
        r.append(over / under)
    return np.array(r)


HIPPO_LAGT = _measure(
    reference=hippo_lagt,
    parameters={"n": orders, "alpha": laguerre_exponents, "beta": laguerre_decays},
    citation="gu2020hippo, App. D.2",
    tags=("HiPPO-LagT", "translated Laguerre exponential measure"),
)
hippo_lagt = HIPPO_LAGT.checked(hippo_lagt)


def hippo_chebt(*, n, window=1.0):
    """A_ik = −4i/w for k < i and i−k odd, that by √½ for k = 0;  B = 2√2/(πw) (1, √2, √2, …).

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, and `window`, the
    length w of the window. In double precision. A is nilpotent: x is the projection of u for t ≤ w,
    and meaningless later. Units: `A` and `B` that of 1/w.

    Raises ValueError if `n` is not an integer ≥ 1 or `window` is not a number above 0. Source:
    [gu2020hippo, App. D.5].

    >>> import numpy as np
    >>> import refssm
    >>> A, B = refssm.hippo_chebt(n=4, window=2.0)
    >>> A.round(4).tolist()[2:], (np.pi * B).round(4).tolist()
    ([[0.0, -4.0, 0.0, 0.0], [-4.2426, 0.0, -6.0, 0.0]], [1.4142, 2.0, 2.0, 2.0])
    """
    (i, k), w = rows_and_columns(n), float(window)
    halved = np.where(k == 0, np.sqrt(0.5), 1.0)
    A = np.where((k < i) & ((i - k) % 2 == 1), -(4 * i / w) * halved, 0.0)
    B = np.where(k == 0, np.sqrt(8), 4) / (np.pi * w)  # 2√2 and 2√2·√2, rounded once
    return A, B


HIPPO_CHEBT = _measure(
    reference=hippo_chebt,
    parameters={"n": orders, "window": windows},
    citation="gu2020hippo, App. D.5",
    tags=("HiPPO-ChebT", "translated Chebyshev"),
)
hippo_chebt = HIPPO_CHEBT.checked(hippo_chebt)


def _rotation(n, w):
    """S: S_{2k+1,2k} = 2πk/w = −S_{2k,2k+1}."""
    k = np.arange(n // 2)
    R = np.zeros((n, n))
    R[2 * k + 1, 2 * k] = 2 * np.pi * k / w
    return R - R.T


def _now(n):
    """b = (1, 0, √2, 0, √2, 0, …): the basis at s = 0."""
    b = np.zeros(n)
    b[::2] = np.sqrt(2)
    b[0] = 1
    return b


def hippo_fourier(*, n, window=1.0):
    """A = S − 2 b bᵀ/w,  B = 2 b/w.

    Signature ``->(n,n),(n)`` and the keywords `n`, the number of coefficients, an even one, and
    `window`, the length w of the window. In double precision. At the ends of the window the series
    gives the mean of both ends, so u(t−w) = 2 bᵀx − u(t): this gives the factors 2. Units: `A` and
    `B` that of 1/w.

    Raises ValueError if `n` is not an even integer ≥ 2 or `window` is not a number above 0. Source:
    [gu2023train].

    >>> import numpy as np
    >>> import refssm
    >>> A, B = refssm.hippo_fourier(n=4, window=2.0)
    >>> (A / np.pi).round(4).tolist()[2:], B.round(4).tolist()
    ([[-0.4502, 0.0, -0.6366, -1.0], [0.0, 0.0, 1.0, 0.0]], [1.0, 0.0, 1.4142, 0.0])
    """
    b, w = _now(n), float(window)
    return _rotation(n, w) - 2 * np.outer(b, b) / w, 2 * b / w


HIPPO_FOURIER = _measure(
    reference=hippo_fourier,
    parameters={"n": even_orders, "window": windows},
    citation="gu2023train",
    tags=("S4-FouT", "HiPPO-FouT", "truncated Fourier basis"),
)
hippo_fourier = HIPPO_FOURIER.checked(hippo_fourier)


def hippo_fourier_naive(*, n, window=1.0):
    """A = S − b bᵀ/w,  B = b/w.

    Signature ``->(n,n),(n)``: as `hippo_fourier`, but it approximates u(t−w) by bᵀx, the value of
    the series. That is the mean of both ends, not u(t−w), so the state is no memory of the window,
    however large `n` is. The complex form is −1/w off the diagonal and (2πik − 1)/w on it.
    Keywords, units and errors are those of `hippo_fourier`. Source: [gu2020hippo, App. D.4].

    >>> import refssm
    >>> A, B = refssm.hippo_fourier_naive(n=2)
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    """
    b, w = _now(n), float(window)
    return _rotation(n, w) - np.outer(b, b) / w, b / w


HIPPO_FOURIER_NAIVE = _measure(
    reference=hippo_fourier_naive,
    parameters={"n": even_orders, "window": windows},
    citation="gu2020hippo, App. D.4",
    tags=("textbook Fourier window",),
)
hippo_fourier_naive = HIPPO_FOURIER_NAIVE.checked(hippo_fourier_naive)


def hippo_fourier_diagonal(*, n):
    """A = S − ½ I,  B = b, for w = 1.

    Signature ``->(n,n),(n)`` and the keyword `n`, the number of coefficients, an even one. In
    double precision. Each pair of states is a damped rotation, −½ ± 2πik; there is no finite
    window. Units: none. Errors are those of `hippo_fourier`. Source: [gu2022s4d].

    >>> import refssm
    >>> A, B = refssm.hippo_fourier_diagonal(n=4)
    >>> A.round(4).tolist()[2:], B.round(4).tolist()
    ([[0.0, 0.0, -0.5, -6.2832], [0.0, 0.0, 6.2832, -0.5]], [1.0, 0.0, 1.4142, 0.0])
    """
    return _rotation(n, 1.0) - 0.5 * np.eye(n), _now(n)


HIPPO_FOURIER_DIAGONAL = _measure(
    reference=hippo_fourier_diagonal,
    parameters={"n": even_orders},
    citation="gu2022s4d",
    tags=("S4D-Fou", "diagonal Fourier"),
)
hippo_fourier_diagonal = HIPPO_FOURIER_DIAGONAL.checked(hippo_fourier_diagonal)


def hippo_rescale(A, B, s):
    """A_ik s_i/s_k and s_i B_i: the memory of the states s x.

    Signature ``(n,n),(n),(n)->(n,n),(n)``: `A` and `B` of a system, `s` the factor of each state,
    never 0; leading axes broadcast. Any of float32, float64, longdouble and their complex types;
    each result is complex if ``np.result_type(A, s)`` or ``np.result_type(B, s)`` is, in the
    largest precision of all. Units: those of the states change. To reconstruct a signal, divide the
    states by `s` first.

    Raises ValueError if sizes disagree, TypeError for other types. A zero in `s` divides by zero
    without a warning. NaN stays in its rows and columns. Source: [gu2020hippo].

    >>> import refssm
    >>> A, B = refssm.hippo_rescale([[-1.0, 0.0], [-3.0, -2.0]], [1.0, 1.0], [1.0, 2.0])
    >>> A.tolist(), B.tolist()
    ([[-1.0, 0.0], [-6.0, -2.0]], [1.0, 2.0])
    """
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], s.shape[:-1])
    scaled = s[..., :, None] * A / s[..., None, :], s * B
    return tuple(
        np.broadcast_to(y, (*batch, *y.shape[y.ndim - rank :])).astype(_type(y, A, B, s))
        for y, rank in zip(scaled, (2, 1), strict=True)
    )


def _type(y, *arrays):
    """The type of y (real or complex), in the precision of all arrays."""
    return np.result_type(y, *(np.finfo(a.dtype).dtype for a in arrays))


def hippo_rescale_vjp(dA_scaled, dB_scaled, A, B, s):
    """dA_ik = dA'_ik (s_i/s_k)*,  dB_i = dB'_i s_i*,  and from rows, columns and B:

    ds_i = Σ_k (dA'_ik (A_ik/s_k)* − dA'_ki (A'_ki/s_i)*) + dB'_i B_i*,  A'_ki = A_ki s_k/s_i.
    Returns `(dA, dB, ds)`, shaped like `A`, `B` and `s`.
    """
    rows, columns = s[..., :, None].conj(), s[..., None, :].conj()
    grown = dA_scaled * A.conj() / columns
    ds = grown.sum(-1) - (grown * rows / columns).sum(-2) + dB_scaled * B.conj()
    dA, dB = dA_scaled * rows / columns, dB_scaled * s.conj()
    return unbroadcast(dA, A), unbroadcast(dB, B), unbroadcast(ds, s)


HIPPO_RESCALE = _measure(
    reference=hippo_rescale,
    signature="(n,n),(n),(n)->(n,n),(n)",
    inputs={"A": matrices, "B": input_vectors, "s": scales},
    outputs=("A_scaled", "B_scaled"),
    batch="d, d, d",
    traits=frozenset({"linear:A->A_scaled", "linear:B->B_scaled"}),
    citation="gu2020hippo",
    lacks=frozenset({"jit"}),
    tags=("change the scale of states", "similarity transform by a diagonal matrix"),
)
hippo_rescale = HIPPO_RESCALE.checked(hippo_rescale)
hippo_rescale_vjp = HIPPO_RESCALE.checked_vjp(hippo_rescale_vjp)
