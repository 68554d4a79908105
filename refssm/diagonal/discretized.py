"""The kernels of S4D: a diagonal continuous system, discretized [gu2022s4d].

    K_k = Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

with Ā and B̄ of `discretize_diagonal_zoh` or `discretize_diagonal_bilinear` and one step size `dt`
for all modes. The sum is complex and covers the given modes only: no factor 2, no real part.

Those for conjugate pairs, of which one mode each is stored, are twice the real part [gu2022s4d,
§3.3].

    K_k = 2 Re Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

It is the kernel of the real system with the modes (w, w*) and the coefficients (B, B*), (C, C*).
"""

from functools import partial

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.diagonal.sums import (
    against,
    bilinear_powers,
    exponentials,
    moment_against,
    slope_against,
    total,
)
from refssm.discretize.phi import moment, phi1
from refssm.domains import coefficients, kernel_modes, steps

# what all four have
_kernel = partial(
    Operator,
    signature="(n),(n),(n),()->(l)",
    inputs={"w": kernel_modes, "B": coefficients, "C": coefficients, "dt": steps},
    outputs=("k",),
    batch="d, d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="gu2022s4d, §3.3",
)


def diagonal_kernel_zoh(w, B, C, dt, *, l):
    """K_k = Σ_n C_n dt φ₁(z_n) B_n e^{z_n k},  z = dt·w,  φ₁(z) = (e^z − 1)/z, φ₁(0) = 1.

    Signature ``(n),(n),(n),()->(l)``: `w` the continuous modes, `B` and `C` the input and output
    coefficients, `dt` the real step size, `n` modes, and the keyword `l`, the length;
    leading axes broadcast. Any of float32, float64, longdouble and their complex types; the result
    has ``np.result_type(w, B, C, dt)``. Units: `w` that of 1/`dt`, `K` that of `dt` times those of
    `B` and `C`.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in a mode or in `dt` reaches every k. Source: [gu2022s4d, §3.3].

    >>> import refssm
    >>> from math import log
    >>> refssm.diagonal_kernel_zoh([0.0, -log(2)], [1.0, log(2)], [1.0, 2.0], 1.0, l=3)
    array([2.  , 1.5 , 1.25])
    """
    h = dt[..., None]
    z = h * w
    return total(C * (h * phi1(z)) * B, exponentials(z, l))


def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    """H = dt φ₁(z), E_nk = e^{z_n k}; ∂H/∂w = dt² φ₁'(z), ∂H/∂dt = e^z;

    ∂K_k/∂w = C B (dt² φ₁' + k dt H) E,  ∂K_k/∂dt = Σ_n C B (e^z + k w H) E.

    Returns `(dw, dB, dC, ddt)`, shaped like `w`, `B`, `C` and `dt`.
    """
    h = dt[..., None]
    z = h * w
    H, E = h * phi1(z), exponentials(z, l)
    S, T = against(dk, E), moment_against(dk, C * H * B, E)
    dw = (C * B * (h * h * moment(1, z))).conj() * S + h * T
    ddt = ((C * B * np.exp(z)).conj() * S + w.conj() * T).sum(-1)
    dB, dC = (C * H).conj() * S, (H * B).conj() * S
    return unbroadcast_each((dw, dB, dC, ddt), (w, B, C, dt))


DIAGONAL_KERNEL_ZOH = _kernel(
    reference=diagonal_kernel_zoh,
    tags=(
        "s4d_kernel_zoh",
        "S4D kernel",
        "SSMKernelDiag",
        "S4DKernel",
        "S4D-Lin",
        "S4D-Inv",
        "log_dt log_A_real A_imag pairs",
    ),
)
diagonal_kernel_zoh = DIAGONAL_KERNEL_ZOH.checked(diagonal_kernel_zoh)
diagonal_kernel_zoh_vjp = DIAGONAL_KERNEL_ZOH.checked_vjp(diagonal_kernel_zoh_vjp)


def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """K_k = Σ_n C_n dt R_n B_n Ā_n^k,  h = ½dt·w,  R = 1/(1 − h),  Ā = (1 + h)/(1 − h).

    Signature ``(n),(n),(n),()->(l)``: arguments, types, units and errors are those of
    `diagonal_kernel_zoh`. The powers are computed from log Ā = 2 artanh h. At dt·w = −2, Ā = 0 and
    only K_0 is not 0; dt·w = 2 is a pole. Source: [gu2022s4d, §3.3].

    >>> import refssm
    >>> refssm.diagonal_kernel_bilinear([-2.0, 0.0], [1.0, 1.0], [6.0, 2.0], 1.0, l=3)
    array([5., 2., 2.])
    """
    dt = dt[..., None]
    h = dt * w / 2
    return total(C * (dt / (1 - h)) * B, bilinear_powers(h, l))


def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    """R = 1/(1 − h), E_nk = Ā_n^k; ∂Ā/∂w = dt R², ∂Ā/∂dt = w R²;

    ∂K_k/∂w = C B dt² R² (½E_k + k R E_{k−1}),  ∂K_k/∂dt = Σ_n C B R² (E_k + k dt·w R E_{k−1}).

    Returns `(dw, dB, dC, ddt)`, shaped like `w`, `B`, `C` and `dt`.
    """
    step = dt[..., None]
    z = step * w
    R, E = 1 / (1 - z / 2), bilinear_powers(z / 2, l)
    H, through = step * R, (R * R).conj()
    S, T = against(dk, E), slope_against(dk, C * H * B, E)
    dw = step * through * (step / 2 * (C * B).conj() * S + T)
    ddt = (through * ((C * B).conj() * S + w.conj() * T)).sum(-1)
    return unbroadcast_each((dw, (C * H).conj() * S, (H * B).conj() * S, ddt), (w, B, C, dt))


DIAGONAL_KERNEL_BILINEAR = _kernel(
    reference=diagonal_kernel_bilinear,
    tags=("s4d_kernel", "S4D kernel bilinear", "SSMKernelDiag disc bilinear"),
)
diagonal_kernel_bilinear = DIAGONAL_KERNEL_BILINEAR.checked(diagonal_kernel_bilinear)
diagonal_kernel_bilinear_vjp = DIAGONAL_KERNEL_BILINEAR.checked_vjp(diagonal_kernel_bilinear_vjp)


def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """K_k = 2 Re Σ_n C_n dt φ₁(z_n) B_n e^{z_n k},  z = dt·w,  φ₁(z) = (e^z − 1)/z, φ₁(0) = 1.

    Signature ``(n),(n),(n),()->(l)``: arguments, units and errors are those of
    `diagonal_kernel_zoh`; `n` counts the stored modes. The factor 2 is applied to every mode: for a
    mode on the real axis pass half of its `C`. The result is real, in the precision of the
    arguments. Source: [gu2022s4d, §3.3].

    >>> import numpy as np
    >>> import refssm
    >>> w = [-1 + 2j * np.pi]
    >>> refssm.diagonal_kernel_zoh_real(w, [1.0], w, 1.0, l=3) / np.expm1(-1)
    array([2.        , 0.73575888, 0.27067057])
    """
    return 2 * DIAGONAL_KERNEL_ZOH.reference(w, B, C, dt, l=l).real


def diagonal_kernel_zoh_real_vjp(dk, w, B, C, dt, *, l):
    """The gradient of `diagonal_kernel_zoh` for the real cotangent 2 dk.

    Returns `(dw, dB, dC, ddt)`, shaped like `w`, `B`, `C` and `dt`.
    """
    return DIAGONAL_KERNEL_ZOH.bare_vjp(2 * dk, w, B, C, dt, l=l)


DIAGONAL_KERNEL_ZOH_REAL = _kernel(
    reference=diagonal_kernel_zoh_real,
    tags=("S4D kernel conjugate pairs", "twice the real part", "S4DKernel halves"),
)
diagonal_kernel_zoh_real = DIAGONAL_KERNEL_ZOH_REAL.checked(diagonal_kernel_zoh_real)
diagonal_kernel_zoh_real_vjp = DIAGONAL_KERNEL_ZOH_REAL.checked_vjp(diagonal_kernel_zoh_real_vjp)


def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """K_k = 2 Re Σ_n C_n dt R_n B_n Ā_n^k,  h = ½dt·w,  R = 1/(1 − h),  Ā = (1 + h)/(1 − h).

    Signature ``(n),(n),(n),()->(l)``: as `diagonal_kernel_zoh_real`, with the bilinear map of
    `diagonal_kernel_bilinear`. Source: [gu2022s4d, §3.3].

    >>> import refssm
    >>> refssm.diagonal_kernel_bilinear_real([2j], [1.0], [1 - 1j], 1.0, l=4).round(15) + 0.0
    array([ 2.,  0., -2.,  0.])
    """
    return 2 * DIAGONAL_KERNEL_BILINEAR.reference(w, B, C, dt, l=l).real


def diagonal_kernel_bilinear_real_vjp(dk, w, B, C, dt, *, l):
    """The gradient of `diagonal_kernel_bilinear` for the real cotangent 2 dk.

    Returns `(dw, dB, dC, ddt)`, shaped like `w`, `B`, `C` and `dt`.
    """
    return DIAGONAL_KERNEL_BILINEAR.bare_vjp(2 * dk, w, B, C, dt, l=l)


DIAGONAL_KERNEL_BILINEAR_REAL = _kernel(
    reference=diagonal_kernel_bilinear_real,
    tags=("S4D kernel bilinear conjugate pairs", "SSMKernelDiag bilinear halves"),
)
diagonal_kernel_bilinear_real = DIAGONAL_KERNEL_BILINEAR_REAL.checked(diagonal_kernel_bilinear_real)
diagonal_kernel_bilinear_real_vjp = DIAGONAL_KERNEL_BILINEAR_REAL.checked_vjp(
    diagonal_kernel_bilinear_real_vjp
)
