"""Mamba's scan: a softplus, the selective scan, a skip connection and a gate.

    Δ_k = softplus(dt_k + dt_bias),    x_k = e^{Δ_k A} x_{k-1} + Δ_k u_k B_k,
    y_k = (C_k · x_k + D u_k) silu(z_k)

`A` has its sign: the caller computes −e^{A_log} [gu2023mamba].
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import sigmoid, silu, softplus
from refssm.domains import biases, gates, input_matrices, preactivations, states
from refssm.scan.blocks import no_resets, run, windows
from refssm.selective_scan.selective import (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    at_rest,
    pulled_back,
)


def steps(dt, dt_bias):
    """softplus(dt + dt_bias)."""
    return softplus(dt + dt_bias[..., None])


def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """y_k = (C_k · x_k + D u_k) silu(z_k),  x_k = e^{Δ_k A} x_{k-1} + Δ_k u_k B_k from rest.

    Signature ``(l),(l),(n),(l,n),(l,n),(),(l),()->(l)``: as `selective_scan` with step sizes Δ =
    softplus(dt + dt_bias), the channel's skip `D` and the gate `z`. `dt`, `z` and `dt_bias` are
    real. Types, units and errors are those of `selective_scan`. Source: [gu2023mamba, Alg. 2].

    >>> import refssm
    >>> y = refssm.mamba_scan([2.0], [30.0], [-1.0], [[1.0]], [[1.0]], 3.0, [40.0], -10.0)
    >>> print(f"{y[0]:.6f}")  # Δ = 20 + 2e-9, x = 40, and a gate of 40
    1840.000000
    """
    y = SELECTIVE_SCAN.reference(u, steps(dt, dt_bias), A, B, C)
    return (y + D[..., None] * u) * silu(z)


def mamba_scan_vjp(dy, u, dt, A, B, C, D, z, dt_bias):
    """With s_k = C_k · x_k + D u_k:  ds = silu(z) dy,  dz = Re s* dy σ(z) (1 + z σ(−z)),
    dD = Σ u* ds,  du also has D* ds; ddt = σ(dt + dt_bias) dΔ, and its sum is ddt_bias.

    The rest is `selective_scan_vjp` for ds. Returns `(du, ddt, dA, dB, dC, dD, dz, ddt_bias)`,
    shaped like the arguments.
    """
    arguments = (u, dt, A, B, C, D, z, dt_bias)
    rest = at_rest(u, dt, A, B, C)
    resets = no_resets(u.shape[-1])
    return unbroadcast_each(gated_back(dy, rest, arguments, rest, resets)[:-1], arguments)


def gated_back(dy, dx, arguments, x0, resets):
    """Gradients for the arguments and x0, from the cotangents of gated outputs and last state."""
    u, dt, A, B, C, D, z, dt_bias = arguments
    v = dt + dt_bias[..., None]
    step, slope, open_ = softplus(v), sigmoid(v), sigmoid(z)
    s = ungated(u, step, A, B, C, x0, resets) + D[..., None] * u
    ds = dy * (z * open_)
    dz = s.conj() * dy * (open_ * (1 + z * sigmoid(-z)))
    du, dstep, dA, dB, dC, dx0 = pulled_back(ds, dx, u, step, A, B, C, x0, resets)
    ddt = dstep * slope
    dD = np.sum(u.conj() * ds, axis=-1)
    du = du + D[..., None].conj() * ds
    return du, ddt, dA, dB, dC, dD, dz, np.sum(ddt, axis=-1), dx0


def ungated(u, step, A, B, C, x0, resets):
    """C_k · x_k, block by block: only the states of one block exist at a time."""
    batch = np.broadcast_shapes(x0.shape[:-1], resets.shape[:-1])
    y, state = [(u * step)[..., :0]], np.broadcast_to(x0, (*batch, x0.shape[-1]))
    for w in windows(u.shape[-1]):
        decay = np.exp(step[..., w, None] * A[..., None, :])
        x = run(decay, (step * u)[..., w, None] * B[..., w, :], state, resets[..., w])
        state = x[..., -1, :]
        y.append((C[..., w, :] * x).sum(-1))
    return np.concatenate(y[1:], axis=-1) if len(y) > 1 else y[0]


MAMBA_SCAN = Operator(
    reference=mamba_scan,
    signature="(l),(l),(n),(l,n),(l,n),(),(l),()->(l)",
    inputs={
        **SELECTIVE_SCAN.inputs,
        "dt": preactivations,
        "D": input_matrices,
        "z": gates,
        "dt_bias": biases,
    },
    batch="b d, b d, d, b, b, d, b d, d",
    traits=frozenset({"causal", "state", "linear:u", "linear:B,D", "linear:C,D"}),
    citation="gu2023mamba, Alg. 2",
    tags=(
        "selective_scan_fn",
        "selective_scan_ref",
        "selective_scan_cuda",
        "delta_softplus delta_bias",
    ),
)
mamba_scan = MAMBA_SCAN.checked(mamba_scan)
mamba_scan_vjp = MAMBA_SCAN.checked_vjp(mamba_scan_vjp)


def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """y_k = (C_k · x_k + D u_k) silu(z_k) from x_{-1} = x0, and the last state.

    Signature ``(l),(l),(n),(l,n),(l,n),(),(l),(),(n)->(l),(n)``: as `mamba_scan` and
    `selective_scan_stateful`; the state is not gated. Source: [gu2023mamba, Alg. 2].

    >>> import refssm
    >>> y, x = refssm.mamba_scan_stateful(
    ...     [1.0], [0.0], [0.0], [[0.0]], [[1.0]], 0.0, [0.0], 0.0, [4.0])
    >>> y, x
    (array([0.]), array([4.]))
    """
    y, x = SELECTIVE_SCAN_STATEFUL.reference(u, steps(dt, dt_bias), A, B, C, x0)
    y = (y + D[..., None] * u) * silu(z)
    return y, with_batch(x, 1, y.shape[:-1])


def mamba_scan_stateful_vjp(dy, dx, u, dt, A, B, C, D, z, dt_bias, x0):
    """As in `mamba_scan_vjp`, with dx added to the last g;  dx0 = a_0* g_0.

    Returns `(du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx0)`, shaped like the arguments.
    """
    arguments = (u, dt, A, B, C, D, z, dt_bias)
    gradients = gated_back(dy, dx, arguments, x0, no_resets(u.shape[-1]))
    return unbroadcast_each(gradients, (*arguments, x0))


MAMBA_SCAN_STATEFUL = Operator(
    reference=mamba_scan_stateful,
    signature="(l),(l),(n),(l,n),(l,n),(),(l),(),(n)->(l),(n)",
    form="stateful",
    inputs={**MAMBA_SCAN.inputs, "x0": states},
    outputs=("y", "x"),
    batch="b d, b d, d, b, b, d, b d, d, b d",
    traits=frozenset({"causal", "state", "linear:u,x0", "linear:C,D->y"}),
    citation="gu2023mamba, Alg. 2",
    tags=("selective_scan_fn return_last_state", "Mamba prefill"),
)
mamba_scan_stateful = MAMBA_SCAN_STATEFUL.checked(mamba_scan_stateful)
mamba_scan_stateful_vjp = MAMBA_SCAN_STATEFUL.checked_vjp(mamba_scan_stateful_vjp)
