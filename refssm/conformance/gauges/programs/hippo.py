"""Programs of HiPPO's memories and their gradients: an exponential, then a scan."""

import numpy as np

from refssm.conformance.gauges.programs import discretize
from refssm.conformance.gauges.programs import scan as scans
from refssm.conformance.gauges.programs.arithmetic import adjoint, product, times
from refssm.discretize.hold import zoh_exponent
from refssm.hippo.memory import HIPPO_PROJECT
from refssm.scan.dense import DENSE_SCAN

LARGEST = 64  # states; products without BLAS take seconds above it


def _held(A, B, dt):
    """Ā and B̄ from [[Ā, B̄], [0, I]]."""
    n = A.shape[-1]
    E = discretize.expm(zoh_exponent(A, B[..., None], dt))
    return E[..., :n, :n], E[..., :n, n]


def states(scan):
    """x_k = Ā x_{k−1} + B̄ u_k with [[Ā, B̄], [0, I]] = e^G, G = dt [[A, B], [0, 0]]."""

    def program(A, B, u, dt):
        if A.shape[-1] > LARGEST:
            return None
        A_bar, B_bar = _held(A, B, dt)
        return scan(A_bar, _driven(A_bar, B_bar, u))

    return program


def gradients(scan, L):
    """dĀ = Σ_{k>0} g_k x_{k−1}ᴴ,  dB̄ = Σ_k g_k u_k*,  du_k = B̄ᴴ g_k, then zero-order hold's."""

    def vjp(dx, A, B, u, dt):
        if A.shape[-1] > LARGEST or u.shape[-1] == 0:
            return None
        A_bar, B_bar = _held(A, B, dt)
        x, g = scan(A_bar, _driven(A_bar, B_bar, u)), _back(scan, A_bar, dx)
        dA_bar = product(g[..., 1:, :].mT, x[..., :-1, :].conj())
        dB_bar = (g * u.conj()[..., None]).sum(-2)
        dA, dB, ddt = discretize.held(L)(dA_bar, dB_bar[..., None], A, B[..., None], dt)
        return dA, dB[..., 0], times(g, B_bar.conj()), ddt

    return vjp


def _driven(A_bar, B_bar, u):
    """B̄ u_k, with the leading axes of all."""
    b = B_bar[..., None, :] * u[..., None]
    return np.broadcast_to(b, (*np.broadcast_shapes(A_bar.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


def _back(scan, A_bar, dx):
    return np.flip(scan(adjoint(A_bar), np.flip(dx, axis=-2)), axis=-2)


_BY_STEPS = DENSE_SCAN.reference
_SCANS = {
    "by_steps": _BY_STEPS,
    "doubled": scans.dense_doubled,
    "in_blocks": scans.dense_in_blocks,
}
_DERIVATIVES = (discretize.as_a_block, discretize.by_squarings, discretize.by_quadrature)
OUTPUTS = {HIPPO_PROJECT.name: {name: states(scan) for name, scan in _SCANS.items()}}
GRADIENTS = {
    HIPPO_PROJECT.name: {
        name: gradients(scan, L)
        for (name, scan), L in zip(_SCANS.items(), _DERIVATIVES, strict=True)
    }
}
