"""Vandermonde kernel: the impulse response of a diagonal system [gu2022s4d, §3.3].

    k_j = Σ_n v_n e^{x_n j},   j = 0 … l−1

`x` are the logarithms of the discrete poles (x_n = dt·w_n under ZOH) and v_n = C_n B̄_n. The name
comes from the Vandermonde matrix E_nj = e^{x_n j}. First the sum, then its form for conjugate
pairs, which stores one mode of each pair.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import coefficients, exponents


def vandermonde_kernel(v, x, *, l):
    """k_j = Σ_n v_n e^{x_n j}, j = 0 … l−1.

    Signature ``(n),(n)->(l)``: `v` the coefficients C_n B̄_n, `x` the logarithms of the discrete
    poles, `n` modes, and the keyword `l`, the length; leading axes broadcast. Any of float32,
    float64, longdouble and their complex types; the result has ``np.result_type(v, x)``.
    Units: `x` has none (per step), `k` has those of `v`.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in a mode reaches every j. Source: [gu2022s4d, §3.3].

    >>> import refssm
    >>> refssm.vandermonde_kernel([1.0, 3.0], [0.0, -np.log(2)], l=4)
    array([4.   , 2.5  , 1.75 , 1.375])
    """
    return (v[..., :, None] * _vandermonde(x, l)).sum(-2)


def vandermonde_kernel_vjp(dk, v, x, *, l):
    """E_nj = e^{x_n j};  ∂k_j/∂v_n = E_nj,  ∂k_j/∂x_n = j v_n E_nj.

    Returns `(dv, dx)`, shaped like `v` and `x`.
    """
    E = _vandermonde(x, l).conj()
    dv = (dk[..., None, :] * E).sum(-1)
    dx = v.conj() * ((_steps(x, l) * dk)[..., None, :] * E).sum(-1)
    return unbroadcast(dv, v), unbroadcast(dx, x)


def _vandermonde(x, l):
    """E_nj = e^{x_n j}; time is the last axis, where NumPy sums pairwise."""
    return np.exp(x[..., :, None] * _steps(x, l))


def _steps(x, l):
    """0 … l−1, in the precision of x."""
    return np.arange(l, dtype=np.finfo(x.dtype).dtype)


VANDERMONDE_KERNEL = Operator(
    reference=vandermonde_kernel,
    signature="(n),(n)->(l)",
    inputs={"v": coefficients, "x": exponents},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"causal", "linear:v"}),
    citation="gu2022s4d, §3.3",
    tags=("vandermonde_product", "log_vandermonde without conjugates", "sum of exponentials"),
)
vandermonde_kernel = VANDERMONDE_KERNEL.checked(vandermonde_kernel)
vandermonde_kernel_vjp = VANDERMONDE_KERNEL.checked_vjp(vandermonde_kernel_vjp)


def vandermonde_kernel_real(v, x, *, l):
    """k_j = 2 Re Σ_n v_n e^{x_n j}, j = 0 … l−1: one mode of each conjugate pair is given.

    Signature ``(n),(n)->(l)``: as `vandermonde_kernel`, for a real system whose complex modes form
    conjugate pairs; `n` counts the stored modes. The factor 2 is applied to every mode: for a mode
    on the real axis pass half its coefficient. The result is real, in the precision of the
    arguments. Raises the same errors as `vandermonde_kernel`. Source: [gu2022s4d, §3.3].

    >>> import refssm
    >>> refssm.vandermonde_kernel_real([0.5], [0.5j * np.pi], l=4).round(15) + 0.0
    array([ 1.,  0., -1.,  0.])
    """
    return 2 * VANDERMONDE_KERNEL.reference(v, x, l=l).real


def vandermonde_kernel_real_vjp(dk, v, x, *, l):
    """The gradient of `vandermonde_kernel` for the real cotangent 2 dk.

    Returns `(dv, dx)`, shaped like `v` and `x`.
    """
    return VANDERMONDE_KERNEL.bare_vjp(2 * dk.real, v, x, l=l)


VANDERMONDE_KERNEL_REAL = Operator(
    reference=vandermonde_kernel_real,
    signature="(n),(n)->(l)",
    inputs={"v": coefficients, "x": exponents},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"causal", "linear:v"}),
    citation="gu2022s4d, §3.3",
    tags=("log_vandermonde", "log_vandermonde_naive", "log_vandermonde_fast", "conjugate pairs"),
)
vandermonde_kernel_real = VANDERMONDE_KERNEL_REAL.checked(vandermonde_kernel_real)
vandermonde_kernel_real_vjp = VANDERMONDE_KERNEL_REAL.checked_vjp(vandermonde_kernel_real_vjp)
