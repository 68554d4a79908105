"""Krylov kernel: the impulse response of a dense system by its powers [gu2022s4, §2.3].

    K_k = C A^k B,   k = 0 … l−1

`A` and `B` are discrete. This is what every faster kernel is checked against: S4's computes the
same for a diagonal plus low rank, S4D's for a diagonal A.
"""

from dataclasses import replace

import numpy as np

from refssm._operator import Operator
from refssm.broadcasting import unbroadcast_each
from refssm.domains import coefficients, contractions


def krylov_kernel(A, B, C, *, l):
    """K_k = C A^k B, k = 0 … l−1.

    Signature ``(n,n),(n),(n)->(l)``: `A` and `B` of the discrete system, `C` its output row, `n`
    states, and the keyword `l`, the length; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result has their ``np.result_type``. Units: `A` has
    none, `K` those of B·C. O(l n²) operations.

    Raises ValueError where sizes disagree or `l` is no length, TypeError for other types. NaN in
    `A` reaches every entry but the first, which is C·B. Source: [gu2022s4, §2.3].

    >>> import refssm
    >>> refssm.krylov_kernel([[0.5, 1.0], [0.0, 0.5]], [0.0, 1.0], [1.0, 0.0], l=4)
    array([0.  , 1.  , 1.  , 0.75])
    """
    x, K = _at_start(A, B, C), []
    for _ in range(l):
        K.append(np.einsum("...n,...n->...", C, x))
        x = np.einsum("...ij,...j->...i", A, x)
    return np.stack(K, axis=-1) if K else np.zeros_like(x[..., :0], np.result_type(x, C))


def krylov_kernel_vjp(dK, A, B, C, *, l):
    """x_k = A^k B, g_k = dK_k C* + Aᴴ g_{k+1};  dB = g_0, dC = Σ dK_k x_k*, dA = Σ g_k x_{k−1}ᴴ.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    x = [_at_start(A, B, C)]
    for _ in range(l - 1):
        x.append(np.einsum("...ij,...j->...i", A, x[-1]))
    dA, dC, g = np.zeros_like(A * x[0][..., None]), np.zeros_like(x[0] * C), np.zeros_like(x[0] * C)
    for k in range(l - 1, -1, -1):
        dC = dC + dK[..., k, None] * x[k].conj()
        g = dK[..., k, None] * C.conj() + g
        if k:
            dA = dA + g[..., :, None] * x[k - 1][..., None, :].conj()
            g = np.einsum("...ji,...j->...i", A.conj(), g)
    return unbroadcast_each((dA, g, dC), (A, B, C))


def _at_start(A, B, C):
    """B along all leading axes, in a type that A keeps."""
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
    return np.broadcast_to(B, (*batch, B.shape[-1])).astype(np.result_type(A, B))


powers = replace(contractions, tame=("one",))  # others decay below the smallest normal number

KRYLOV_KERNEL = Operator(
    reference=krylov_kernel,
    signature="(n,n),(n),(n)->(l)",
    inputs={"A": powers, "B": coefficients, "C": coefficients},
    outputs=("K",),
    batch="d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="gu2022s4, §2.3",
    lacks=frozenset({"gpu"}),
)
krylov_kernel = KRYLOV_KERNEL.checked(krylov_kernel)
krylov_kernel_vjp = KRYLOV_KERNEL.checked_vjp(krylov_kernel_vjp)
