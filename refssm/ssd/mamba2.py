"""Mamba-2's whole call: softplus and limits of the steps, the recurrence, a skip and a gate.

    Δ_t = clip(softplus(dt_t + dt_bias), dt_min, dt_max),
    S_t = e^{Δ_t A} S_{t-1} + Δ_t x_t B_tᵀ,    y_t = (S_t C_t + D x_t) silu(z_t)

`A` is one rate for each head and has its sign: the caller computes −e^{A_log} [dao2024mamba2]. All
is real. First one step, as in decoding.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import clip, clip_vjp, sigmoid, silu, softplus
from refssm.domains import (
    biases,
    gates,
    head_rates,
    preactivations,
    real_matrices,
    real_projections,
    real_signals,
    real_states,
    step_ceilings,
    step_floors,
)
from refssm.scan.linear import MARKS
from refssm.ssd.recurrent import SSD, SSD_STEP, at_rest, pulled_back, started


def mamba2_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min=0.0, dt_max=np.inf):
    """S ← e^{Δ A} S + Δ x Bᵀ,  y = (S C + D x) silu(z),  Δ = clip(softplus(dt + dt_bias)).

    Signature ``(p),(),(),(n),(n),(),(p),(),(p,n)->(p),(p,n)``: one step of `mamba2_scan_stateful`;
    the last output is the next state. Types, units and errors are those of `mamba2_scan_stateful`.
    Source: [dao2024mamba2, §7.1].

    >>> import refssm
    >>> refssm.mamba2_step([1.0], 0.0, 0.0, [0.0], [1.0], 0.0, [0.0], 0.0, [[4.0]])
    (array([0.]), array([[4.]]))
    """
    step = steps(dt + dt_bias, dt_min, dt_max)
    y, S = SSD_STEP.reference(step[..., None] * x, step * A, B, C, S)
    y = (y + D[..., None] * x) * silu(z)
    return y, with_batch(S, 2, y.shape[:-1])


def mamba2_step_vjp(dy, dS_next, x, dt, A, B, C, D, z, dt_bias, S, *, dt_min=0.0, dt_max=np.inf):
    """As in `mamba2_scan_stateful_vjp`, for one step.

    Returns `(dx, ddt, dA, dB, dC, dD, dz, ddt_bias, dS)`, shaped like the arguments.
    """
    v, limits = np.broadcast_to(dt + dt_bias, dy.shape[:-1]), (dt_min, dt_max)
    step, wide = steps(v, *limits), np.broadcast_to(x, dy.shape)
    given = step[..., None] * wide, step * A, B, C, np.broadcast_to(S, dS_next.shape)
    s = SSD_STEP.reference(*given)[0] + D[..., None] * x
    ds, dz = gate_back(dy, s, z)
    dv, dlog_a, dB, dC, dS = SSD_STEP.bare_vjp(ds, dS_next, *given)
    dx, dA, ddt = steps_back(dv, dlog_a, wide, v, A, *limits)
    dx, dD = dx + D[..., None] * ds, (x * ds).sum(-1)
    gradients = (dx, ddt, dA, dB, dC, dD, dz, ddt, dS)
    return unbroadcast_each(gradients, (x, dt, A, B, C, D, z, dt_bias, S))


def steps(v, dt_min=0.0, dt_max=np.inf):
    """clip(softplus(v), dt_min, dt_max)."""
    return clip(softplus(v), dt_min, dt_max)


def steps_back(dv, dlog_a, x, v, A, dt_min=0.0, dt_max=np.inf):
    """The cotangents of x, A and v from those of Δ x and Δ A, Δ = clip(softplus(v))."""
    step = softplus(v)
    dstep = clip_vjp((x * dv).sum(-1) + A * dlog_a, step, dt_min, dt_max)
    step = clip(step, dt_min, dt_max)
    return step[..., None] * dv, step * dlog_a, dstep * sigmoid(v)


def gate_back(dy, s, z):
    """The cotangents of s and z from that of s silu(z)."""
    open_ = sigmoid(z)
    return dy * (z * open_), s * dy * (open_ * (1 + z * sigmoid(-z)))


def scaled(x, dt, A, dt_bias, dt_min=0.0, dt_max=np.inf):
    """Δ x and Δ A, the arguments of the recurrence."""
    step = steps(dt + dt_bias[..., None], dt_min, dt_max)
    return step[..., None] * x, step * A[..., None]


def _run(arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    """The outputs, and the last state if there is a first one; the state is not gated."""
    x, dt, A, B, C, D, z, dt_bias = arguments
    given = *scaled(x, dt, A, dt_bias, dt_min, dt_max), B, C
    y, *last = SSD.run(given, S0, resets)
    y = (y + D[..., None, None] * x) * silu(z)
    return y, *(with_batch(S, 2, y.shape[:-2]) for S in last)


def _back(cotangents, arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    """Gradients for the arguments and S0."""
    x, dt, A, B, C, D, z, dt_bias = arguments
    given = *scaled(x, dt, A, dt_bias, dt_min, dt_max), B, C
    start, begun = started(given, S0, resets)
    dy, dS = (*cotangents, at_rest(x, B))[:2]
    s = SSD.run(given, start, begun)[0] + D[..., None, None] * x
    ds, dz = gate_back(dy, s, z)
    dv, dlog_a, dB, dC, dS0 = pulled_back(ds, dS, *given, start, begun)
    v = dt + dt_bias[..., None]
    dx, dA, ddt = steps_back(dv, dlog_a, x, v, A[..., None], dt_min, dt_max)
    dx, dD = dx + D[..., None, None] * ds, (x * ds).sum((-2, -1))
    gradients = (dx, ddt, dA.sum(-1), dB, dC, dD, dz, ddt.sum(-1), dS0)
    return unbroadcast_each(gradients, (*arguments, start))


MAMBA2 = Recurrence(
    name="mamba2_scan",
    step=Pair(mamba2_step, mamba2_step_vjp),
    run=_run,
    back=_back,
    signature="(l,p),(l),(),(l,n),(l,n),(),(l,p),()->(l,p)",
    inputs={
        "x": real_signals,
        "dt": preactivations,
        "A": head_rates,
        "B": real_projections,
        "C": real_projections,
        "D": real_matrices,
        "z": gates,
        "dt_bias": biases,
    },
    batch="b g h, b g h, g h, b g, b g, g h, b g h, g h",
    state=State("S", "p,n", "b g h", real_states),
    marks=MARKS,
    traits=frozenset({"causal", "matrix-product"}),  # its kernels are chunks of masked matrices
    parameters={"dt_min": step_floors, "dt_max": step_ceilings},
    linear=("x", "C,D->y"),
    linear_from_rest=("B,D",),
    doc="""y_t = (S_t C_t + D x_t) silu(z_t),  S_t = e^{Δ_t A} S_{t-1} + Δ_t x_t B_tᵀ from rest.

    Signature ``(l,p),(l),(),(l,n),(l,n),(),(l,p),()->(l,p)``: `x` the inputs of one head, `dt` its
    steps before the softplus, `A` its rate, `B` and `C` per step, `D` its skip, `z` the gates,
    `dt_bias` the bias of its steps; Δ = clip(softplus(dt + dt_bias), dt_min, dt_max), by default
    without limits. `l` time, `p` head size, `n` state; heads of a group share `B` and `C`, which
    have length 1 in that axis. Any of float32, float64, longdouble, all real; the result has their
    ``np.result_type``. Units: Δ a time, `A` its inverse, `y` those of Δ·x·B·C and of D·x.

    Raises ValueError if sizes disagree or limits are not 0 ≤ dt_min ≤ dt_max, TypeError for other
    types. NaN and infinity propagate without warnings. Source: [dao2024mamba2, §7.1].
    """,
    vjp_doc="""With s_t = S_t C_t + D x_t:  ds = silu(z) dy,  dz = s dy σ(z) (1 + z σ(−z)),
    dD = Σ x ds,  dx also has D ds; ddt = σ(dt + dt_bias) dΔ where dt_min ≤ softplus ≤ dt_max, else
    0, and its sum is ddt_bias; dΔ_t = x_t · d(Δ x)_t + A dlog_a_t,  dA = Σ Δ dlog_a.

    The rest is `ssd_recurrent_vjp` for ds, Δ x and log_a = Δ A.""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.mamba2_scan(one, [50.0, 50.0], 0.0, one, one, 3.0, [[60.0], [60.0]], 0.0).ravel()
        array([3180., 6180.])
        """,
        "stateful": """
        >>> refssm.mamba2_scan_stateful(
        ...     [[1.0]], [9.0], 0.0, [[1.0]], [[1.0]], 0.0, [[0.0]], 0.0, [[4.0]], dt_max=0.5)
        (array([[0.]]), array([[4.5]]))
        """,
        "packed": """
        >>> one, open_ = [[1.0], [1.0]], [[60.0], [60.0]]
        >>> refssm.mamba2_scan_packed(
        ...     one, [50.0, 50.0], 0.0, one, one, 0.0, open_, 0.0, [False, True]).ravel()
        array([3000., 3000.])
        """,
        "packed_stateful": """
        >>> zero = [[0.0], [0.0]]
        >>> y, S = refssm.mamba2_scan_packed_stateful(
        ...     zero, [0.0, 0.0], 0.0, zero, zero, 0.0, zero, 0.0, [[[4.0]], [[2.0]]], [1, 2])
        >>> S.ravel()
        array([4., 2.])
        """,
        "states": """
        >>> one, zero = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.mamba2_scan_states(
        ...     one, [50.0, 50.0], 0.0, one, one, 0.0, zero, 0.0, [[4.0]], [0, 1, 2])
        >>> S.ravel()
        array([  4.,  54., 104.])
        """,
    },
    citation="dao2024mamba2, §7.1",
    citation_of_packed="dao2024mamba2, §8.3",
    tags={
        "plain": (
            "mamba_chunk_scan_combined",
            "Mamba-2",
            "mamba_chunk_scan_combined dt_bias dt_softplus dt_limit D z",
            "mamba_split_conv1d_scan_combined",
            "Mamba2Mixer torch_forward",
            "Bamba",
            "Zamba2",
            "Nemotron-H",
            "Granite 4 hybrid",
            "Falcon-H1",
        ),
        "stateful": (
            "mamba_chunk_scan_combined return_final_states",
            "Mamba-2 prefill",
            "ggml_ssm_scan with heads",
            "ssm_attn",
            "ssm_update",
        ),
        "packed": ("mamba_chunk_scan_combined seq_idx", "Mamba-2 varlen"),
        "packed_stateful": (
            "mamba_chunk_scan_combined cu_seqlens initial_states varlen_states",
            "mamba_chunk_scan_combined_varlen",
        ),
        "states": ("Mamba-2 state checkpoints for prefix caching",),
        "step": ("selective_state_update with heads", "Mamba-2 decoding"),
    },
)
(
    MAMBA2_SCAN,
    MAMBA2_SCAN_STATEFUL,
    MAMBA2_SCAN_PACKED,
    MAMBA2_SCAN_PACKED_STATEFUL,
    MAMBA2_SCAN_STATES,
    MAMBA2_STEP,
) = MAMBA2.operators
(
    (mamba2_scan, mamba2_scan_vjp),
    (mamba2_scan_stateful, mamba2_scan_stateful_vjp),
    (mamba2_scan_packed, mamba2_scan_packed_vjp),
    (mamba2_scan_packed_stateful, mamba2_scan_packed_stateful_vjp),
    (mamba2_scan_states, mamba2_scan_states_vjp),
    (mamba2_step, mamba2_step_vjp),
) = MAMBA2.public()
