"""Mamba's scan of packed sequences, and one step at a time for decoding."""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import sigmoid, silu, softplus
from refssm.domains import resets, states
from refssm.selective_scan.mamba import MAMBA_SCAN, gated_back, steps
from refssm.selective_scan.packed import SELECTIVE_SCAN_PACKED, SELECTIVE_STEP
from refssm.selective_scan.selective import at_rest


def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    """y_k = (C_k · x_k + D u_k) silu(z_k), from rest where a sequence begins.

    Signature ``(l),(l),(n),(l,n),(l,n),(),(l),(),(l)->(l)``: as `mamba_scan` and
    `selective_scan_packed`. Source: [gu2023mamba, Alg. 2], sequence boundaries as in
    [lu2023structured].

    >>> import refssm
    >>> B = C = [[1.0], [1.0]]
    >>> y = refssm.mamba_scan_packed(
    ...     [1.0, 1.0], [20.0, 20.0], [-1.0], B, C, 0.0, [0.0, 0.0], 0.0, [True, True])
    >>> y
    array([0., 0.])
    """
    y = SELECTIVE_SCAN_PACKED.reference(u, steps(dt, dt_bias), A, B, C, resets)
    return (y + D[..., None] * u) * silu(z)


def mamba_scan_packed_vjp(dy, u, dt, A, B, C, D, z, dt_bias, resets):
    """As in `mamba_scan_vjp`, with `selective_scan_packed_vjp` inside.

    Returns `(du, ddt, dA, dB, dC, dD, dz, ddt_bias, None)`, shaped like the arguments.
    """
    arguments = (u, dt, A, B, C, D, z, dt_bias)
    rest = at_rest(u, dt, A, B, C)
    gradients = gated_back(dy, rest, arguments, rest, resets)
    return *unbroadcast_each(gradients[:-1], arguments), None


MAMBA_SCAN_PACKED = Operator(
    reference=mamba_scan_packed,
    signature="(l),(l),(n),(l,n),(l,n),(),(l),(),(l)->(l)",
    inputs={**MAMBA_SCAN.inputs, "resets": resets},
    batch="b d, b d, d, b, b, d, b d, d, b",
    traits=frozenset({"causal", "linear:u", "linear:B,D", "linear:C,D"}),
    citation="lu2023structured",
    tags=("Mamba varlen cu_seqlens", "PackMamba"),
)
mamba_scan_packed = MAMBA_SCAN_PACKED.checked(mamba_scan_packed)
mamba_scan_packed_vjp = MAMBA_SCAN_PACKED.checked_vjp(mamba_scan_packed_vjp)


def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """x ← e^{Δ A} x + Δ u B,  y = (C · x + D u) silu(z),  Δ = softplus(dt + dt_bias).

    Signature ``(),(),(n),(n),(n),(),(),(),(n)->(),(n)``: one step of `mamba_scan_stateful`; the
    last output is the next state. Types, units and errors are those of `mamba_scan_stateful`.
    Source: [gu2023mamba, Alg. 2].

    >>> import refssm
    >>> refssm.mamba_step(1.0, 0.0, [0.0], [0.0], [1.0], 0.0, 0.0, 0.0, [4.0])
    (array(0.), array([4.]))
    """
    y, x = SELECTIVE_STEP.reference(u, softplus(dt + dt_bias), A, B, C, x)
    y = (y + D * u) * silu(z)
    return y, with_batch(x, 1, y.shape)


def mamba_step_vjp(dy, dx_next, u, dt, A, B, C, D, z, dt_bias, x):
    """As in `mamba_scan_stateful_vjp`, for one step.

    Returns `(du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx)`, shaped like the arguments.
    """
    v = dt + dt_bias
    step, open_ = softplus(v), sigmoid(z)
    s = SELECTIVE_STEP.reference(u, step, A, B, C, x)[0] + D * u
    ds = dy * (z * open_)
    dz = s.conj() * dy * (open_ * (1 + z * sigmoid(-z)))
    state = np.broadcast_to(x, dx_next.shape)
    du, dstep, dA, dB, dC, dx = SELECTIVE_STEP.bare_vjp(
        ds, dx_next, *_full(ds, u, step), A, B, C, state
    )
    ddt, dD = dstep * sigmoid(v), u.conj() * ds
    gradients = (du + D.conj() * ds, ddt, dA, dB, dC, dD, dz, ddt, dx)
    return unbroadcast_each(gradients, (u, dt, A, B, C, D, z, dt_bias, x))


def _full(y, *xs):
    """Each of `xs`, broadcast to the batch axes of y: gradients are summed only at the end."""
    return (np.broadcast_to(x, y.shape) for x in xs)


MAMBA_STEP = Operator(
    reference=mamba_step,
    signature="(),(),(n),(n),(n),(),(),(),(n)->(),(n)",
    form="step",
    inputs={**MAMBA_SCAN.inputs, "x": states},
    outputs=("y", "x_next"),
    batch="b d, b d, d, b, b, d, b d, d, b d",
    traits=frozenset({"linear:u,x", "linear:C,D->y"}),
    citation="gu2023mamba, Alg. 2",
    tags=("selective_state_update", "Mamba decoding"),
)
mamba_step = MAMBA_STEP.checked(mamba_step)
mamba_step_vjp = MAMBA_STEP.checked_vjp(mamba_step_vjp)
