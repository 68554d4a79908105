"""Programs of the Krylov kernel and its gradients: by steps, from the left, doubled, by tables."""

from math import ceil, sqrt

import numpy as np

from refssm.conformance.gauges.programs.arithmetic import adjoint, product, times
from refssm.hankel.matrix import MARKOV_PARAMETERS
from refssm.krylov import KRYLOV_KERNEL

by_steps, backwards = KRYLOV_KERNEL.reference, KRYLOV_KERNEL.bare_vjp


def from_the_left(A, B, C, *, l):
    """The rows C A^j times B."""
    return by_steps(A.mT, C, B, l=l)


def doubled(A, B, C, *, l):
    """C X with X = (B, A B, …); the columns from m to 2m are A^m times those before."""
    return times(columns(A, B, l).mT, C).astype(np.result_type(A, B, C))


def columns(A, x, l):
    """(x, A x, …, A^{l−1} x), (…, n, l)."""
    X, power = x[..., None], A
    while X.shape[-1] < l:
        X = np.concatenate(np.broadcast_arrays(X, product(power, X)), axis=-1)
        power = product(power, power)
    return X[..., :l]


def by_tables(A, B, C, *, l):
    """j = aq + b: the rows C A^{aq} times the columns A^b B."""
    if l == 0:
        return None
    q = max(1, ceil(sqrt(l)))
    power = A
    for _ in range(q - 1):
        power = product(A, power)
    K = product(columns(power.mT, C, -(-l // q)).mT, columns(A, B, q))
    return K.reshape(*K.shape[:-2], -1)[..., :l].astype(np.result_type(A, B, C))


def doubled_backwards(dK, A, B, C, *, l):
    """The sums over time of states and costates, both by doubling."""
    if l == 0:
        return None
    X, back = columns(A, B, l), adjoint(A)
    G, shift = dK[..., None, :] * C.conj()[..., None], 1
    while shift < l:  # g_j = Σ_i (Aᴴ)^{i−j} C* dK_i
        ahead = np.concatenate([G[..., shift:], np.zeros_like(G[..., :shift])], axis=-1)
        G, back, shift = G + product(back, ahead), product(back, back), 2 * shift
    dA = product(G[..., 1:], adjoint(X[..., :-1]))
    dC = (dK[..., None, :] * X.conj()).sum(-1)
    return dA, G[..., 0], dC


def transposed_backwards(dK, A, B, C, *, l):
    """The gradients of the transposed system: rows and columns change places."""
    dA, dC, dB = backwards(dK, A.mT, C, B, l=l)
    return dA.mT, dB, dC


_VALUES = {
    "by_steps": by_steps,
    "doubled": doubled,
    "from_the_left": from_the_left,
    "by_tables": by_tables,
}
_GRADIENTS = {
    "by_steps": backwards,
    "transposed": transposed_backwards,
    "doubled": doubled_backwards,
}
OUTPUTS = dict.fromkeys((KRYLOV_KERNEL.name, MARKOV_PARAMETERS.name), _VALUES)
GRADIENTS = dict.fromkeys((KRYLOV_KERNEL.name, MARKOV_PARAMETERS.name), _GRADIENTS)
