"""The generalised delta rule: a state that decays, and of which each step takes one row elsewhere.

    S_t = diag(e^{log_g_t}) S_{t-1} + b_t (a_tᵀ S_{t-1}) + k_t v_tᵀ,    y_t = S_tᵀ q_t

The transition is a diagonal plus a low-rank matrix, here of rank 1. One head of RWKV-7
[peng2025rwkv7, Eq. 17] is a = −κ̂ and b = κ̂ ∘ η, with a key κ̂ of norm 1 and rates η of each key
between 0 and 1: what the state recalls for κ̂ is taken away in part. a reads the state before it
decays. With a = −e^{log_g} ∘ k, b = β k and keys β k it is `kimi_delta_rule`, with b = 0
`gated_linear_recurrence`. First one step, as in decoding; the other forms follow from it.
"""

import numpy as np

from refssm._declaration.contract import COLUMNS
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import (
    log_gates,
    queries,
    real_projections,
    real_signals,
    real_states,
    removals,
    removed_keys,
)
from refssm.linear_attention.sweep import Sweep
from refssm.scan.linear import MARKS


def _recalled(S, a):
    """Sᵀ a."""
    return einsum("...np,...n->...p", S, a)


def _ready(k, v, log_g, a, b):
    """k vᵀ, e^{log_g} as a column, a and b."""
    return k[..., :, None] * v[..., None, :], np.exp(log_g)[..., :, None], a, b


def _after(write, decay, a, b, S):
    """diag(e^{log_g}) S + b (aᵀ S) + k vᵀ."""
    return decay * S + b[..., :, None] * _recalled(S, a)[..., None, :] + write


def _before(G, write, decay, a, b):
    """diag(e^{log_g}) G + a (bᵀ G)."""
    del write
    return decay * G + a[..., :, None] * _recalled(G, b)[..., None, :]


def delta_dplr_step(q, k, v, log_g, a, b, S):
    """S ← diag(e^{log_g}) S + b (aᵀ S) + k vᵀ,  y = Sᵀ q: one step, and the next state.

    Signature ``(n),(n),(p),(n),(n),(n),(n,p)->(p),(n,p)``: as one step of `delta_dplr_stateful`;
    types, units and errors are the same. Source: [peng2025rwkv7, Eq. 17].

    >>> import refssm
    >>> refssm.delta_dplr_step([2.0], [1.0], [1.0], [0.0], [-1.0], [0.5], [[4.0]])
    (array([6.]), array([[3.]]))
    """
    S = _after(*_ready(k, v, log_g, a, b), S)
    y = _recalled(S, q)
    return y, with_batch(S, 2, y.shape[:-1])


def delta_dplr_step_vjp(dy, dS_next, q, k, v, log_g, a, b, S):
    """G = q dyᵀ + dS',  z = Sᵀ a,  w = Gᵀ b;  dq = S' dy,  dk = G v,  dv = Gᵀ k,
    dlog_g_n = Σ_p (e^{log_g} S) ∘ G,  da = S w,  db = G z,  dS = diag(e^{log_g}) G + a wᵀ.

    Returns `(dq, dk, dv, dlog_g, da, db, dS)`, shaped like the arguments.
    """
    _, decay, *_ = ready = _ready(k, v, log_g, a, b)
    G = q[..., :, None] * dy[..., None, :] + dS_next
    gradients = (
        einsum("...np,...p->...n", _after(*ready, S), dy),
        einsum("...np,...p->...n", G, v),
        _recalled(G, k),
        (decay * S * G).sum(-1),
        einsum("...np,...p->...n", S, _recalled(G, b)),
        einsum("...np,...p->...n", G, _recalled(S, a)),
        _before(G, *ready),
    )
    return unbroadcast_each(gradients, (q, k, v, log_g, a, b, S))


SWEEP = Sweep(
    _ready,
    _after,
    _before,
    delta_dplr_step_vjp,
    ranks=(2, 2, 2, 2, 2, 2),
    ready_ranks=(3, 3, 2, 2),
    gate=3,
)
DELTA_DPLR_RULE = Recurrence(
    name="delta_dplr",
    step=Pair(delta_dplr_step, delta_dplr_step_vjp),
    run=SWEEP.run,
    back=SWEEP.back,
    signature="(l,n),(l,n),(l,p),(l,n),(l,n),(l,n)->(l,p)",
    inputs={
        "q": queries,
        "k": real_projections,
        "v": real_signals,
        "log_g": log_gates,
        "a": removed_keys,
        "b": removals,
    },
    batch="b g, b g, b g h, b g h, b g h, b g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "k", "q->y"),
    contract=COLUMNS,
    doc="""y_t = S_tᵀ q_t,  S_t = e^{log_g_t} ∘ S_{t-1} + b_t (a_tᵀ S_{t-1}) + k_t v_tᵀ from rest.

    Signature ``(l,n),(l,n),(l,p),(l,n),(l,n),(l,n)->(l,p)``: `q` the queries of one head, scaled
    before, `k` its keys, `v` its values, `log_g` the natural logarithms of its gates, at most 0,
    one for each key, `a` what reads the state before it decays, `b` where that is added; `l` time,
    `n` keys, `p` values; leading axes broadcast: heads of a group are a leading axis, which has
    length 1 in shared `q` and `k`. Head h of H belongs to group h // (H/G): neighbours share.
    RWKV-7 is a = −κ̂ and b = κ̂ ∘ η with ‖κ̂‖ = 1 and 0 ≤ η ≤ 1. Any of float32, float64 and
    longdouble; the result has their ``np.result_type``. Nothing is normalised or clipped. Units:
    `log_g` and a ∘ b have none, `y` those of q·k·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [peng2025rwkv7, Eq. 17].
    """,
    vjp_doc="""G_t = q_t dy_tᵀ + (diag(e^{log_g_{t+1}}) + a_{t+1} b_{t+1}ᵀ) G_{t+1};  with z_t =
    S_{t-1}ᵀ a_t and w_t = G_tᵀ b_t:  dq_t = S_t dy_t,  dk_t = G_t v_t,  dv_t = G_tᵀ k_t,
    dlog_g_t = Σ_p (e^{log_g_t} S_{t-1}) ∘ G_t,  da_t = S_{t-1} w_t,  db_t = G_t z_t.""",
    examples={
        "plain": """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[1.0], [0.5]]
        >>> refssm.delta_dplr(one, one, [[1.0], [2.0]], g, a, b).ravel()
        array([1. , 2.5])
        """,
        "stateful": """
        >>> refssm.delta_dplr_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [[0.0]], [[-1.0]], [[0.5]], [[4.0]])
        (array([[6.]]), array([[3.]]))
        """,
        "packed": """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[0.5], [0.5]]
        >>> refssm.delta_dplr_packed(one, one, one, g, a, b, [False, True]).ravel()
        array([1., 1.])
        """,
        "packed_stateful": """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[0.5], [0.5]]
        >>> y, S = refssm.delta_dplr_packed_stateful(
        ...     one, one, one, g, a, b, [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([3., 1.]), array([3., 1.]))
        """,
        "states": """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[0.5], [0.5]]
        >>> y, S = refssm.delta_dplr_states(one, one, one, g, a, b, [[4.0]], [0, 1])
        >>> S.ravel()
        array([4., 3.])
        """,
    },
    citation="peng2025rwkv7, Eq. 17",
    citation_of_packed="peng2025rwkv7, Eq. 17",
    tags={
        "plain": ("RWKV-7", "generalised delta rule", "dplr_recurrence", "fused_recurrent_rwkv7"),
        "stateful": ("RWKV-7 output_final_state", "RWKV-7 prefill", "ggml_rwkv_wkv7"),
        "packed": ("RWKV-7 varlen cu_seqlens",),
        "packed_stateful": ("RWKV-7 varlen initial states",),
        "states": ("RWKV-7 with states at places",),
        "step": ("RWKV-7 decoding", "RWKV-7 one step"),
    },
)
(
    DELTA_DPLR,
    DELTA_DPLR_STATEFUL,
    DELTA_DPLR_PACKED,
    DELTA_DPLR_PACKED_STATEFUL,
    DELTA_DPLR_STATES,
    DELTA_DPLR_STEP,
) = DELTA_DPLR_RULE.operators
(
    (delta_dplr, delta_dplr_vjp),
    (delta_dplr_stateful, delta_dplr_stateful_vjp),
    (delta_dplr_packed, delta_dplr_packed_vjp),
    (delta_dplr_packed_stateful, delta_dplr_packed_stateful_vjp),
    (delta_dplr_states, delta_dplr_states_vjp),
    (delta_dplr_step, delta_dplr_step_vjp),
) = DELTA_DPLR_RULE.public()
