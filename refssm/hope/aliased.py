"""The same kernel with time wrapped around: the inverse transform of l samples [yu2024hope].

    K_k = Σ_{m≥0} K∞_{k + ml} = 1/l Σ_j G_j e^{+2πijk/l},   k = 0 … l−1

K∞ is the infinite response (refssm.hope.kernel): its part after l steps is added at the beginning.
A program that multiplies spectra of length l computes this kernel.
"""

import numpy as np
from numpy.fft import fft, ifft

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.domains import coefficients, warping_steps
from refssm.hope.transfer import hope_spectrum, spectrum_vjp


def hope_kernel_aliased(h, dt, *, l):
    """K_k = Σ_{m≥0} K∞_{k + ml}, the l-point inverse transform of `hope_transfer`, k = 0 … l−1.

    Signature ``(n),()->(l)``: arguments, types and units are those of `hope_kernel`. Every entry
    depends on `l`: docs/operators/hope.md says how much. Errors are measured by those of the
    transfer function, the same for every k. NaN anywhere makes the kernel NaN.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types and
    complex `dt`. Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_kernel_aliased([1.0, 2.0, 4.0], 1.0, l=2).round(12)  # 0 + 2, 1 + 4
    array([2., 5.])
    """
    dtype, G = np.result_type(h, dt), hope_spectrum(h, dt, l=l)
    if l == 0:
        return np.zeros(G.shape, dtype)
    K = ifft(G)
    return (K if dtype.kind == "c" else K.real).astype(dtype)


def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    """The gradient of `hope_transfer` for the cotangent fft(dk)/l.

    Returns `(dh, ddt)`, shaped like `h` and `dt`.
    """
    kind = np.result_type(dk, h, dt, np.complex64)
    wide = dk.astype(np.result_type(kind, np.complex128), copy=False)
    gradients = spectrum_vjp(fft(wide) / l if l else wide, h, dt, l=l)
    return unbroadcast_each((g.astype(kind) for g in gradients), (h, dt))


HOPE_KERNEL_ALIASED = Operator(
    reference=hope_kernel_aliased,
    signature="(n),()->(l)",
    inputs={"h": coefficients, "dt": warping_steps},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"linear:h"}),
    definition=hope_spectrum,
    contract=SPECTRUM,
    citation="yu2024hope",
    tags=("HOPE kernel by inverse FFT",),
)
hope_kernel_aliased = HOPE_KERNEL_ALIASED.checked(hope_kernel_aliased)
hope_kernel_aliased_vjp = HOPE_KERNEL_ALIASED.checked_vjp(hope_kernel_aliased_vjp)
