"""The kernel of a shift: the state stores the last n inputs; B writes to it and C reads from it.

    x_k = S x_{k−1} + B u_k,   y_k = C x_k,   (S x)_i = x_{i−1},  (S x)_0 = 0

so K_k = C Sᵏ B, a correlation of finite length [fu2023h3].
"""

import numpy as np

from refssm._declaration.contract import FFT
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.domains import projections


def _read(x, places):
    """x at the indices `places` (0 outside), and a mask of the indices inside."""
    inside = (places >= 0) & (places < x.shape[-1])
    padded = np.concatenate([x, np.zeros_like(x[..., :1]) if x.shape[-1] else x], axis=-1)
    return padded[..., np.where(inside, places, -1)], inside


def shift_kernel(B, C, *, l):
    """K_k = Σ_{i<n−k} B_i C_{i+k} for k < n, else 0.

    Signature ``(n),(n)->(l)``: `B` writes into the n places of the state, `C` reads them, and the
    keyword `l` is the length; leading axes broadcast. Any of float32, float64, longdouble and their
    complex types; the result has ``np.result_type(B, C)``. No complex conjugate. Units: `K` has
    those of `B` times `C`.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in `B_i` reaches all k < n − i, NaN in `C_i` all k ≤ i. Source: [fu2023h3].

    >>> import refssm
    >>> refssm.shift_kernel([1.0, 10.0], [2.0, 3.0], l=4)
    array([32.,  3.,  0.,  0.])
    """
    i, k = np.arange(B.shape[-1]), np.arange(l)[:, None]
    later, inside = _read(C, i + k)  # C_{i+k}
    return np.where(inside, B[..., None, :] * later, 0).sum(-1)


def shift_kernel_vjp(dk, B, C, *, l):
    """∂K_k/∂B_i = C_{i+k} for i + k < n,  ∂K_k/∂C_i = B_{i−k} for k ≤ i.

    Returns `(dB, dC)`, shaped like `B` and `C`.
    """
    i, k = np.arange(B.shape[-1])[:, None], np.arange(l)
    later, inside = _read(C, i + k)
    dB = np.where(inside, dk[..., None, :] * later.conj(), 0).sum(-1)
    earlier, inside = _read(B, i - k)
    dC = np.where(inside, dk[..., None, :] * earlier.conj(), 0).sum(-1)
    return unbroadcast_each((dB, dC), (B, C))


SHIFT_KERNEL = Operator(
    reference=shift_kernel,
    definition=shift_kernel,  # the sum; its paper computes it by FFT
    signature="(n),(n)->(l)",
    inputs={"B": projections, "C": projections},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"causal", "transform", "linear:B", "linear:C"}),
    contract=FFT,
    citation="fu2023h3",
    tags=("SSKernelShift", "H3 shift SSM"),
)
shift_kernel = SHIFT_KERNEL.checked(shift_kernel)
shift_kernel_vjp = SHIFT_KERNEL.checked_vjp(shift_kernel_vjp)
