"""HOPE's kernel: the impulse response of a cascade of all-passes [yu2024hope].

    K_k = Σ_j h_j s_{j+1,k},   ρ = (1 − dt)/(1 + dt)
    s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k}

with s_0 an impulse. Its transfer function is that of refssm.hope.transfer on the whole circle. At
dt = 1 the stages are delays and K = 0, h_0, h_1, …, 0; otherwise it is infinitely long.
"""

import numpy as np

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import coefficients, warping_steps
from refssm.hope.impulses import all_pass_responses
from refssm.hope.transfer import hope_spectrum

NODES = 64  # at least: with few nodes, the first one (not warped) would dominate the mean


def hope_kernel(h, dt, *, l):
    """K_k = Σ_j h_j s_{j+1,k}, k = 0 … l−1: the first l steps of an infinite impulse response.

    Signature ``(n),()->(l)``: `h` the Markov parameters, `dt` the step size, real and > 0, `n`
    parameters, and the keyword `l`, the length; leading axes broadcast. Any of float32, float64,
    longdouble and their complex types; the result has ``np.result_type(h, dt)``, and single
    precision is computed in double and rounded once. Units: K has those of `h`; `dt` is a ratio of
    two step sizes and has none. Errors are measured by those of the transfer function, the same for
    every k.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types and
    complex `dt`. Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_kernel([1.0, 0.5], 1.0, l=4)
    array([0. , 1. , 0.5, 0. ])
    >>> refssm.hope_kernel([1.0, 0.5], 0.5, l=4).round(6)
    array([-0.277778,  0.592593,  0.592593,  0.329218])
    """
    s = all_pass_responses(dt, h.shape[-1] + 1, l)[..., 1:, :]
    return (h[..., :, None] * s).sum(-2).astype(np.result_type(h, dt))


def hope_kernel_vjp(dk, h, dt, *, l):
    """∂K_k/∂h_j = s_{j+1,k},   ∂s_j/∂dt = j (s_{j−1} − s_{j+1})/(2 dt).

    Returns `(dh, ddt)`, shaped like `h` and `dt`.
    """
    n, kind = h.shape[-1], np.result_type(dk, h, dt)
    met = (dk[..., None, :] * all_pass_responses(dt, n + 2, l)).sum(-1)  # Σ_k dk_k s_jk: (…, n+2)
    j = np.arange(1, n + 1)
    warped = (h.conj() * j * (met[..., :-2] - met[..., 2:])).sum(-1) / (2 * dt)
    return unbroadcast(met[..., 1:-1].astype(kind), h), unbroadcast(warped.astype(kind), dt)


def kernel_spectrum(h, dt, *, l):
    """The transfer function at enough nodes; its mean error bounds every error of the kernel."""
    return hope_spectrum(h, dt, l=max(l, NODES))


HOPE_KERNEL = Operator(
    reference=hope_kernel,
    signature="(n),()->(l)",
    inputs={"h": coefficients, "dt": warping_steps},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"linear:h", "causal"}),
    definition=kernel_spectrum,
    contract=SPECTRUM,
    citation="yu2024hope",
    tags=("HOPE kernel", "Hankel operator parameterization", "Laguerre warped Markov parameters"),
)
hope_kernel = HOPE_KERNEL.checked(hope_kernel)
hope_kernel_vjp = HOPE_KERNEL.checked_vjp(hope_kernel_vjp)
