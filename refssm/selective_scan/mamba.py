"""Mamba's scan: a softplus, the selective scan, a skip connection and a gate.

    Δ_k = softplus(dt_k + dt_bias),    x_k = e^{Δ_k A} x_{k-1} + Δ_k u_k B_k,
    y_k = (C_k · x_k + D u_k) silu(z_k)

`A` has its sign: the caller computes −e^{A_log} [gu2023mamba]. First one step, as in decoding.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import sigmoid, silu, softplus
from refssm.domains import biases, gates, input_matrices, preactivations
from refssm.scan.blocks import no_resets, run, windows
from refssm.scan.linear import MARKS
from refssm.selective_scan.selective import SELECTIVE, SELECTIVE_STEP, at_rest, pulled_back


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


def steps(dt, dt_bias):
    """softplus(dt + dt_bias)."""
    return softplus(dt + dt_bias[..., None])


def _run(arguments, x0, resets):
    """The outputs, and the last state if there is a first one; the state is not gated."""
    u, dt, A, B, C, D, z, dt_bias = arguments
    y, *last = SELECTIVE.run((u, steps(dt, dt_bias), A, B, C), x0, resets)
    y = (y + D[..., None] * u) * silu(z)
    return y, *(with_batch(x, 1, y.shape[:-1]) for x in last)


def _back(cotangents, arguments, x0, resets):
    """Gradients for the arguments and x0."""
    rest, l = at_rest(*arguments[:5]), arguments[0].shape[-1]
    dy, dx = (*cotangents, rest)[:2]
    start, begun = rest if x0 is None else x0, no_resets(l) if resets is None else resets
    return unbroadcast_each(gated_back(dy, dx, arguments, start, begun), (*arguments, start))


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


MAMBA = Recurrence(
    name="mamba_scan",
    step=Pair(mamba_step, mamba_step_vjp),
    run=_run,
    back=_back,
    signature="(l),(l),(n),(l,n),(l,n),(),(l),()->(l)",
    inputs={
        **SELECTIVE.inputs,
        "dt": preactivations,
        "D": input_matrices,
        "z": gates,
        "dt_bias": biases,
    },
    batch="b g d, b g d, g d, b g, b g, g d, b g d, g d",
    state=SELECTIVE.state,
    marks=MARKS,
    linear=("u", "C,D->y"),
    linear_from_rest=("B,D",),
    doc="""y_k = (C_k · x_k + D u_k) silu(z_k),  x_k = e^{Δ_k A} x_{k-1} + Δ_k u_k B_k from rest.

    Signature ``(l),(l),(n),(l,n),(l,n),(),(l),()->(l)``: as `selective_scan` with step sizes Δ =
    softplus(dt + dt_bias), the channel's skip `D` and the gate `z`. `dt`, `z` and `dt_bias` are
    real. Types, units and errors are those of `selective_scan`. Source: [gu2023mamba, Alg. 2].
    """,
    vjp_doc="""With s_k = C_k · x_k + D u_k:  ds = silu(z) dy,  dz = Re s* dy σ(z) (1 + z σ(−z)),
    dD = Σ u* ds,  du also has D* ds; ddt = σ(dt + dt_bias) dΔ, and its sum is ddt_bias.

    The rest is `selective_scan_vjp` for ds.""",
    examples={
        "plain": """
        >>> y = refssm.mamba_scan([2.0], [30.0], [-1.0], [[1.0]], [[1.0]], 3.0, [40.0], -10.0)
        >>> print(f"{y[0]:.6f}")  # Δ = 20 + 2e-9, x = 40, and a gate of 40
        1840.000000
        """,
        "stateful": """
        >>> refssm.mamba_scan_stateful(
        ...     [1.0], [0.0], [0.0], [[0.0]], [[1.0]], 0.0, [0.0], 0.0, [4.0])
        (array([0.]), array([4.]))
        """,
        "packed": """
        >>> B = C = [[1.0], [1.0]]
        >>> refssm.mamba_scan_packed(
        ...     [1.0, 1.0], [20.0, 20.0], [-1.0], B, C, 0.0, [0.0, 0.0], 0.0, [True, True])
        array([0., 0.])
        """,
        "packed_stateful": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, x = refssm.mamba_scan_packed_stateful(
        ...     zero, zero, [0.0], one, one, 0.0, zero, 0.0, [[4.0], [2.0]], [1, 2])
        >>> x.ravel()
        array([4., 2.])
        """,
        "states": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, x = refssm.mamba_scan_states(
        ...     zero, zero, [0.0], one, one, 0.0, zero, 0.0, [4.0], [0, 2])
        >>> x.ravel()
        array([4., 4.])
        """,
        "reversed": """
        >>> one, zero = [[1.0], [1.0]], [0.0, 0.0]
        >>> refssm.mamba_scan_reversed(zero, zero, [0.0], one, one, 0.0, zero, 0.0)
        array([0., 0.])
        """,
    },
    citation="gu2023mamba, Alg. 2",
    citation_of_packed="lu2023structured",
    tags={
        "plain": (
            "selective_scan_fn",
            "selective_scan_ref",
            "selective_scan_cuda",
            "delta_softplus delta_bias",
            "selective_scan_fn with groups of channels",
        ),
        "stateful": ("selective_scan_fn return_last_state", "Mamba prefill", "ggml_ssm_scan"),
        "packed": ("Mamba varlen cu_seqlens", "PackMamba"),
        "packed_stateful": (
            "Mamba varlen cu_seqlens initial states",
            "vllm selective_scan_fwd query_start_loc cache_indices",
        ),
        "states": ("Mamba with states at places", "Mamba state checkpoints for prefix caching"),
        "reversed": ("Mamba reverse", "Vision Mamba backward scan", "bimamba"),
        "step": ("selective_state_update", "Mamba decoding"),
    },
)
(
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_PACKED_STATEFUL,
    MAMBA_SCAN_STATES,
    MAMBA_SCAN_REVERSED,
    MAMBA_STEP,
) = MAMBA.operators
(
    (mamba_scan, mamba_scan_vjp),
    (mamba_scan_stateful, mamba_scan_stateful_vjp),
    (mamba_scan_packed, mamba_scan_packed_vjp),
    (mamba_scan_packed_stateful, mamba_scan_packed_stateful_vjp),
    (mamba_scan_states, mamba_scan_states_vjp),
    (mamba_scan_reversed, mamba_scan_reversed_vjp),
    (mamba_step, mamba_step_vjp),
) = MAMBA.public()
