"""Krylov kernel: the impulse response of a dense system by powers of A [gu2022s4, §2.4].

    K_j = C A^j B,   j = 0 … l−1

`A` and `B` are discrete. The tests compare the faster kernels with it: those of a diagonal `A`, and
of a diagonal matrix plus low rank. The vectors A^j B span the Krylov spaces of A and B.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm.domains import projections, transitions


def krylov_kernel(A, B, C, *, l):
    """K_j = C A^j B, j = 0 … l−1.

    Signature ``(n,n),(n),(n)->(l)``: `A` and `B` of the discrete system, `C` its output row, `n`
    states, and the keyword `l`, the length; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result has ``np.result_type(A, B, C)``. `C` is not
    conjugated. Units: `A` has none, `K` those of `B` times `C`. O(l n²) operations.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in `A` reaches every entry except the first; NaN in `B` or `C` reaches all. Source: [gu2022s4,
    §2.4].

    >>> import refssm
    >>> refssm.krylov_kernel([[0.5, 1.0], [0.0, 0.5]], [0.0, 1.0], [1.0, 0.0], l=4)
    array([0.  , 1.  , 1.  , 0.75])
    """
    x, K, row = _at_start(A, B, C), [], C[..., None, :]
    for _ in range(l):
        K.append((row @ x)[..., 0, 0])
        x = A @ x
    return np.stack(K, axis=-1) if K else np.zeros_like(x[..., :0, 0], np.result_type(x, C))


def krylov_kernel_vjp(dK, A, B, C, *, l):
    """x_j = A^j B,  g_j = dK_j C* + Aᴴ g_{j+1};  dB = g_0,  dC = Σ_j dK_j x_j*,
    dA = Σ_{j>0} g_j x_{j−1}ᴴ.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`. Stores all x_j: l·n numbers.
    """
    x, A_H, column = [_at_start(A, B, C)], A.conj().swapaxes(-1, -2), C.conj()[..., None]
    for _ in range(l - 1):
        x.append(A @ x[-1])
    g = [np.zeros_like(x[0] * column)]  # g_l
    for j in range(l - 1, -1, -1):
        later = A_H @ g[-1] if j < l - 1 else g[-1]
        g.append(dK[..., j, None, None] * column + later)
    states = np.concatenate(x, axis=-1).conj()  # (…, n, l)
    costates = np.concatenate(g[::-1], axis=-1)  # g_l is last
    dA = einsum("...il,...jl->...ij", costates[..., 1:l], states[..., : l - 1])
    dC = (dK[..., None, :] * states[..., :l]).sum(-1)
    return unbroadcast_each((dA, g[-1][..., 0], dC), (A, B, C))


def _at_start(A, B, C):
    """B as a column, broadcast to all leading axes, in the result type of A and B."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    return np.broadcast_to(B, (*batch, B.shape[-1]))[..., None].astype(np.result_type(A, B))


KRYLOV_KERNEL = Operator(
    reference=krylov_kernel,
    signature="(n,n),(n),(n)->(l)",
    inputs={"A": transitions, "B": projections, "C": projections},
    outputs=("K",),
    batch="d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="gu2022s4, §2.4",
    tags=("K_conv", "krylov powers of A", "S4 kernel by unrolling"),
)
krylov_kernel = KRYLOV_KERNEL.checked(krylov_kernel)
krylov_kernel_vjp = KRYLOV_KERNEL.checked_vjp(krylov_kernel_vjp)
