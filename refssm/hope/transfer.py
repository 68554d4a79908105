"""HOPE's transfer function: n Markov parameters, on a circle warped by the step size [yu2024hope].

    G_j = Σ_i h_i z'_j^{−(i+1)},   z'_j = e^{iθ'_j},   θ_j = 2πj/l
    θ'_j = 2 atan2(sin θ_j/2, dt cos θ_j/2)

dt = 1 does not warp the circle: G is then the transform of 0, h_0, h_1, …
"""

import numpy as np

from refssm._declaration.contract import SPECTRUM
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.domains import coefficients, warping_steps
from refssm.hope.circle import all_pass, powers, slope


def hope_transfer(h, dt, *, l):
    """G_j = Σ_i h_i z'_j^{−(i+1)}, j = 0 … l−1.

    z'_j = ((1 + dt) ω_j + dt − 1)/((dt − 1) ω_j + dt + 1), ω_j = e^{2πij/l}

    Signature ``(n),()->(l)``: `h` the Markov parameters, `dt` the real step size, `n`
    parameters, and the keyword `l`, the number of nodes; leading axes broadcast. Any of float32,
    float64, longdouble and their complex types; the result is complex, of the precision of
    ``np.result_type(h, dt)``, and single precision is computed in double and rounded once. Units: G
    has those of `h`, `dt` is a ratio of two step sizes and has none. Errors are measured in norm,
    as for a nonuniform transform.

    With a real `h`, G_{l−j} is the conjugate of G_j. Raises ValueError if sizes disagree or `l` is
    not an integer ≥ 0, TypeError for other types and complex `dt`. Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_transfer([1.0, 0.5], 1.0, l=4).round(12)
    array([ 1.5+0.j, -0.5-1.j, -0.5+0.j, -0.5+1.j])
    """
    return hope_spectrum(h, dt, l=l).astype(np.result_type(h, dt, np.complex64))


def hope_spectrum(h, dt, *, l):
    """The transfer function, not yet rounded to the type of the arguments."""
    return (h[..., None, :] * powers(all_pass(h, dt, l), h.shape[-1])).sum(-1)


def hope_transfer_vjp(dk, h, dt, *, l):
    """∂G_j/∂h_i = z'_j^{−(i+1)},   ∂G_j/∂dt = i (sin θ'_j/dt) Σ_i (i+1) h_i z'_j^{−(i+1)}.

    Returns `(dh, ddt)`, shaped like `h` and `dt`.
    """
    kind = np.result_type(dk, h, dt, np.complex64)
    gradients = spectrum_vjp(dk, h, dt, l=l)
    return unbroadcast_each((g.astype(kind) for g in gradients), (h, dt))


def spectrum_vjp(dk, h, dt, *, l):
    """The gradients, without rounding and without the sum over broadcast axes."""
    E, i = powers(all_pass(h, dt, l), h.shape[-1]), np.arange(1, h.shape[-1] + 1)
    warped = 1j * slope(h, dt, l) * ((i * h)[..., None, :] * E).sum(-1)
    return (dk[..., :, None] * E.conj()).sum(-2), (dk * warped.conj()).sum(-1)


HOPE_TRANSFER = Operator(
    reference=hope_transfer,
    signature="(n),()->(l)",
    inputs={"h": coefficients, "dt": warping_steps},
    outputs=("k",),
    batch="d, d",
    traits=frozenset({"linear:h"}),
    contract=SPECTRUM,
    citation="yu2024hope",
    tags=("HOPE transfer function on a warped circle", "HOPE frequency response"),
)
hope_transfer = HOPE_TRANSFER.checked(hope_transfer)
hope_transfer_vjp = HOPE_TRANSFER.checked_vjp(hope_transfer_vjp)
