"""The same kernel with time wrapped around: S4's kernel without the factor I − Ā^l.

    K_k = Σ_{m≥0} C Ā^{k + ml} B̄ = C Ā^k (I − Ā^l)⁻¹ B̄,   k = 0 … l−1
    K̂(z) = C (I − z Ā)⁻¹ B̄ = 2 C (diag D(z) + (1 + z) P Qᴴ)⁻¹ B

Its spectrum is the transfer function at the l-th roots of unity. A program computes it if it stores
C and forgets the factor, or if its C already is C̃.
"""

import numpy as np
from numpy.fft import fft

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm._numerics.elimination import eliminated
from refssm._numerics.overridable import overridable
from refssm.domains import (
    damped_modes,
    input_matrices,
    low_rank,
    low_rank_partners,
    projections,
    steps,
)
from refssm.dplr.system import around_the_circle, corrected, denominators, empty, inverse_transform


def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """K_k = Σ_{m≥0} C Ā^{k + ml} B̄, k = 0 … l−1, for A = diag w − P Qᴴ under the bilinear map.

    Signature ``(n),(n,r),(n,r),(n),(n),()->(l)``: arguments, types and units are those of
    `dplr_kernel`. The inverse transform of the transfer function at the l-th roots of unity;
    infinite or NaN if an eigenvalue of Ā is at a node. Errors are measured by the tracked error
    of the spectrum, the same for every k. NaN anywhere makes the kernel NaN.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types.
    Source: [gu2022s4, §3.2].

    >>> import refssm
    >>> w, P, B, C = [-2.0], [[1.0]], [3.0], [1.0]  # A = −3, and Ā = −1/5, B̄ = 6/5 for dt = 1
    >>> refssm.dplr_kernel_aliased(w, P, P, B, C, 1.0, l=2).round(6)
    array([ 1.25, -0.25])
    """
    dtype = np.result_type(w, P, Q, B, C, dt)
    if l == 0:
        return empty(dtype, l, w, P, Q, B, C, dt)
    return inverse_transform(dplr_aliased_spectrum(w, P, Q, B, C, dt, l=l), dtype)


@overridable
def dplr_aliased_spectrum(w, P, Q, B, C, dt, *, l):
    """2 C (D + (1 + z) P Qᴴ)⁻¹ B. The judge's tracked arrays bring their own error bounds."""
    below, above = around_the_circle(l, w, P, Q, B, C, dt)
    D = denominators(below, above, w, dt)
    return 2 * (C[..., None, :] * resolved(D, above, P, Q, B)).sum(-1)


def resolved(D, s, P, Q, x):
    """(diag D + s P Qᴴ)⁻¹ x; at nodes where some D_n is 0, by elimination of the whole matrix."""
    met = np.any(D == 0, axis=-1)
    y = corrected(np.where(met[..., None], 1, D), np.where(met, 0, s), P, Q, x[..., None, :])
    nodes = np.flatnonzero(np.any(met, axis=tuple(range(met.ndim - 1))))
    if len(nodes):
        I = np.eye(D.shape[-1], dtype=D.real.dtype)
        low_rank = (P @ Q.conj().swapaxes(-1, -2))[..., None, :, :]
        whole = D[..., nodes, :, None] * I + s[nodes, None, None] * low_rank
        y[..., nodes, :] = eliminated(whole, x[..., None, :, None])[..., 0]
    return y


def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """At every node: S = D + (1 + z) P Qᴴ, X = S⁻¹ B, Yᵀ = Cᵀ S⁻¹ and dK̂ = fft(dk)/l:

        ∂K̂/∂C = 2X,  ∂K̂/∂B = 2Y,  ∂K̂/∂w = 2 (1 + z) Y X,  ∂K̂/∂dt = 4 (1 − z)/dt² Yᵀ X
        ∂K̂/∂P = −2 (1 + z) Y (Qᴴ X)ᵀ,  ∂K̂/∂Q* = −2 (1 + z) X (Pᵀ Y)ᵀ

    Returns `(dw, dP, dQ, dB, dC, ddt)`, shaped like the arguments.
    """
    below, above = around_the_circle(l, w, P, Q, B, C, dt)
    dk = dk.astype(np.result_type(dk, w, P, Q, B, C, dt), copy=False)
    D = denominators(below, above, w, dt)
    X = resolved(D, above, P, Q, B)
    Y = resolved(D, above, Q.conj(), P.conj(), C)
    ds = 2 * fft(dk)[..., None] / l if l else 2 * dk[..., None]  # of ½K̂, (…, l, 1)
    dC, dB = (ds * X.conj()).sum(-2), (ds * Y.conj()).sum(-2)
    through = ds * above.conj()[..., None]  # (…, l, 1)
    YX = (Y * X).conj()
    dw = (through * YX).sum(-2)
    QX = einsum("...nr,...ln->...lr", Q.conj(), X)
    PY = einsum("...nr,...ln->...lr", P, Y)
    dP = -(through * Y.conj()).swapaxes(-1, -2) @ QX.conj()
    dQ = -(through.conj() * X).swapaxes(-1, -2) @ PY
    ddt = 2 * (ds[..., 0] * below.conj() * YX.sum(-1)).sum(-1) / (dt * dt)
    return unbroadcast_each((dw, dP, dQ, dB, dC, ddt), (w, P, Q, B, C, dt))


DPLR_KERNEL_ALIASED = Operator(
    reference=dplr_kernel_aliased,
    signature="(n),(n,r),(n,r),(n),(n),()->(l)",
    inputs={
        "w": damped_modes,
        "P": low_rank,
        "Q": low_rank_partners,
        "B": input_matrices,
        "C": projections,
        "dt": steps,
    },
    outputs=("k",),
    batch="d, d, d, d, d, d",
    traits=frozenset({"linear:B", "linear:C"}),
    definition=dplr_aliased_spectrum,
    contract=SPECTRUM,
    citation="gu2022s4, §3.2",
    tags=("K_gen_DPLR", "S4 kernel by inverse FFT without truncation", "C_tilde"),
)
dplr_kernel_aliased = DPLR_KERNEL_ALIASED.checked(dplr_kernel_aliased)
dplr_kernel_aliased_vjp = DPLR_KERNEL_ALIASED.checked_vjp(dplr_kernel_aliased_vjp)
