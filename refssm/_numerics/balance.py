"""Change of basis that makes two gramians equal and diagonal, from their square roots.

    Mᴴ L = U diag(σ) Vᴴ,   S = M U diag(σ)^{−½},   T = L V diag(σ)^{−½}

so that SᴴT = I, SᴴP S = TᴴQ T = diag σ. The square roots come from eigenvectors, because a gramian
of rank below n has no Cholesky factor in floating-point arithmetic.
"""

import numpy as np

from refssm._numerics.overridable import overridable


@overridable
def balanced(P, Q):
    """σ (descending), S and T of Hermitian P and Q (…, n, n); columns of σ = 0 are 0.

    Array types with `__array_function__` (the judge's) bring their own rule here: first-order
    bounds.
    """
    finite = np.isfinite((P * 0 + Q * 0).sum((-2, -1), keepdims=True))
    L, M = (square_root(np.where(finite, X, 0)) for X in (P, Q))
    U, sigma, Vh = np.linalg.svd(M.conj().swapaxes(-1, -2) @ L)
    root = np.sqrt(np.where(sigma > 0, sigma, 1))[..., None, :]
    known = finite & (sigma > 0)[..., None, :]
    V = Vh.conj().swapaxes(-1, -2)
    S, T = (np.where(known, X / root, 0) for X in (M @ U, L @ V))
    S, T = (np.where(finite, X, np.nan) for X in (S, T))
    return np.where(finite[..., 0], sigma, np.nan), S, T


def square_root(P):
    """L with L Lᴴ = P; eigenvalues that rounding made negative count as 0."""
    values, vectors = np.linalg.eigh(P)
    return vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
