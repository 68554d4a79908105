"""Hankel matrices, and their entries, the Markov parameters [zhou1996].

    H_ij = h_(i+j),   h_k = C A^k B

An infinite Hankel matrix has finite rank n exactly if its smallest system has n states (Kronecker).
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import projections, transitions
from refssm.krylov import KRYLOV_KERNEL


def hankel_matrix(h):
    """H_ij = h_(i+j) for i + j < n, else 0.

    Signature ``(n)->(n,n)``: `h` the first n values of an impulse response; leading axes are a
    batch. Any of float32, float64, longdouble and their complex types; the result has that of `h`.
    Symmetric, also for complex `h`: nothing is conjugated. Units: those of `h`.

    Entries beyond the last value are zeros; the values do not repeat. H maps the past n inputs to n
    outputs of a system whose response ends. Raises TypeError for other types. NaN in `h_k` reaches
    the antidiagonal i + j = k. Source: [zhou1996].

    >>> import refssm
    >>> refssm.hankel_matrix([3.0, 2.0, 1.0])
    array([[3., 2., 1.],
           [2., 1., 0.],
           [1., 0., 0.]])
    """
    n = h.shape[-1]
    k = np.arange(n)[:, None] + np.arange(n)
    padded = np.concatenate([h, np.zeros_like(h)], axis=-1)
    return padded[..., k]


def hankel_matrix_vjp(dH, h):
    """dh_k = Σ_{i≤k} dH_{i,k−i}: the sum of an antidiagonal.

    Returns `(dh,)`, shaped like `h`.
    """
    i, k = np.arange(h.shape[-1])[:, None], np.arange(h.shape[-1])
    dH = dH.astype(np.result_type(dH, h))  # sum a narrower cotangent in this type
    along = dH[..., i, np.maximum(k - i, 0)]
    return (unbroadcast(np.where(i <= k, along, 0).sum(-2), h),)


HANKEL_MATRIX = Operator(
    reference=hankel_matrix,
    signature="(n)->(n,n)",
    inputs={"h": projections},
    outputs=("H",),
    batch="d",
    traits=frozenset({"linear:h"}),
    citation="zhou1996",
    tags=("scipy.linalg.hankel", "Hankel operator as a matrix"),
)
hankel_matrix = HANKEL_MATRIX.checked(hankel_matrix)
hankel_matrix_vjp = HANKEL_MATRIX.checked_vjp(hankel_matrix_vjp)


def markov_parameters(A, B, C, *, l):
    """h_k = C A^k B, k = 0 … l−1.

    Signature ``(n,n),(n),(n)->(l)``: `A` and `B` of the discrete system, `C` its output row, `n`
    states, and the keyword `l`, their number; leading axes broadcast. This is `krylov_kernel` under
    control theory's name: the entries of a Hankel matrix, from h_0 = C B on. Types, units, errors
    and NaN are those of `krylov_kernel`. Source: [ho1966].

    >>> import refssm
    >>> h = refssm.markov_parameters([[0.5]], [2.0], [1.0], l=3)
    >>> h.tolist(), refssm.hankel_matrix(h)[0].tolist()
    ([2.0, 1.0, 0.5], [2.0, 1.0, 0.5])
    """
    return KRYLOV_KERNEL.reference(A, B, C, l=l)


def markov_parameters_vjp(dh, A, B, C, *, l):
    """x_k = A^k B,  g_k = dh_k C* + Aᴴ g_{k+1};  dB = g_0,  dC = Σ_k dh_k x_k*,
    dA = Σ_{k>0} g_k x_{k−1}ᴴ.

    Returns `(dA, dB, dC)`, shaped like `A`, `B` and `C`.
    """
    return KRYLOV_KERNEL.bare_vjp(dh, A, B, C, l=l)


MARKOV_PARAMETERS = Operator(
    reference=markov_parameters,
    signature="(n,n),(n),(n)->(l)",
    inputs={"A": transitions, "B": projections, "C": projections},
    outputs=("h",),
    batch="d, d, d",
    traits=frozenset({"causal", "linear:B", "linear:C"}),
    citation="ho1966",
    tags=("impulse response of a discrete system", "impulse response coefficients"),
)
markov_parameters = MARKOV_PARAMETERS.checked(markov_parameters)
markov_parameters_vjp = MARKOV_PARAMETERS.checked_vjp(markov_parameters_vjp)
