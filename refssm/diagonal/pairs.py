"""The kernels of S4D for conjugate pairs, of which one mode each is stored [gu2022s4d, §3.3].

    K_k = 2 Re Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

It is the kernel of the real system with the modes (w, w*) and the coefficients (B, B*), (C, C*).
"""

from refssm._declaration.operator import Operator
from refssm.diagonal.discretized import DIAGONAL_KERNEL_BILINEAR, DIAGONAL_KERNEL_ZOH
from refssm.domains import coefficients, kernel_modes, steps


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


DIAGONAL_KERNEL_ZOH_REAL = Operator(
    reference=diagonal_kernel_zoh_real,
    signature="(n),(n),(n),()->(l)",
    inputs={"w": kernel_modes, "B": coefficients, "C": coefficients, "dt": steps},
    outputs=("k",),
    batch="d, d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="gu2022s4d, §3.3",
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


DIAGONAL_KERNEL_BILINEAR_REAL = Operator(
    reference=diagonal_kernel_bilinear_real,
    signature="(n),(n),(n),()->(l)",
    inputs={"w": kernel_modes, "B": coefficients, "C": coefficients, "dt": steps},
    outputs=("k",),
    batch="d, d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="gu2022s4d, §3.3",
    tags=("S4D kernel bilinear conjugate pairs", "SSMKernelDiag bilinear halves"),
)
diagonal_kernel_bilinear_real = DIAGONAL_KERNEL_BILINEAR_REAL.checked(diagonal_kernel_bilinear_real)
diagonal_kernel_bilinear_real_vjp = DIAGONAL_KERNEL_BILINEAR_REAL.checked_vjp(
    diagonal_kernel_bilinear_real_vjp
)
