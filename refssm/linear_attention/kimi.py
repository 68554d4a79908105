"""Kimi's delta rule: the state decays with a gate for each key, then the delta rule corrects it.

    S_t = (I − β_t k_t k_tᵀ) diag(e^{log_g_t}) S_{t-1} + β_t k_t v_tᵀ,    y_t = S_tᵀ q_t

One head of Kimi delta attention (KDA) [kimi2025linear, §3.1]. With the same gate for all keys it is
`gated_delta_rule`. First one step, as in decoding; the other forms follow from it.
"""

import numpy as np

from refssm._declaration.contract import COLUMNS
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import betas, keys, log_gates, queries, real_signals, real_states
from refssm.linear_attention.delta import reflected, written, written_back
from refssm.linear_attention.sweep import Sweep
from refssm.scan.linear import MARKS


def _ready(k, v, log_g, beta):
    """k, v, e^{log_g} as a column, and β."""
    return k, v, np.exp(log_g)[..., :, None], beta


def _after(k, v, a, beta, S):
    """The delta rule for diag(a) S."""
    return written(k, v, beta, a * S)


def _before(G, k, v, a, beta):
    """diag(a) (I − β k kᵀ) G."""
    return a * reflected(G, k, beta)


def kimi_delta_step(q, k, v, log_g, beta, S):
    """S ← diag(e^{log_g}) S,  S ← S + β k (v − Sᵀ k)ᵀ,  y = Sᵀ q: one step, and the next state.

    Signature ``(n),(n),(p),(n),(),(n,p)->(p),(n,p)``: as one step of `kimi_delta_rule_stateful`;
    types, units and errors are the same. Source: [kimi2025linear, §3.1].

    >>> import refssm
    >>> refssm.kimi_delta_step([2.0], [1.0], [1.0], [0.0], 0.5, [[4.0]])
    (array([5.]), array([[2.5]]))
    """
    S = _after(*_ready(k, v, log_g, beta), S)
    y = einsum("...np,...n->...p", S, q)
    return y, with_batch(S, 2, y.shape[:-1])


def kimi_delta_step_vjp(dy, dS_next, q, k, v, log_g, beta, S):
    """G = q dyᵀ + dS',  Z = a S with a = diag(e^{log_g}),  r = v − Zᵀ k,  w = Gᵀ k;  dq = S' dy,
    dk = β (G r − Z w),  dv = β w,  dlog_g = Σ_p Z ∘ dZ,  dβ = r · w,  dS = a dZ,
    with dZ = G − β k wᵀ.

    Returns `(dq, dk, dv, dlog_g, dbeta, dS)`, shaped like the arguments.
    """
    a = np.exp(log_g)[..., :, None]
    G = q[..., :, None] * dy[..., None, :] + dS_next
    decayed = a * S
    dq = einsum("...np,...p->...n", written(k, v, beta, decayed), dy)
    dk, dv, dbeta, dZ = written_back(G, k, v, beta, decayed)
    dlog_g = (decayed * dZ).sum(-1)
    return unbroadcast_each((dq, dk, dv, dlog_g, dbeta, a * dZ), (q, k, v, log_g, beta, S))


SWEEP = Sweep(
    _ready,
    _after,
    _before,
    kimi_delta_step_vjp,
    ranks=(2, 2, 2, 2, 1),
    ready_ranks=(2, 2, 3, 1),
    gate=3,
)
KIMI = Recurrence(
    name="kimi_delta_rule",
    step=Pair(kimi_delta_step, kimi_delta_step_vjp),
    run=SWEEP.run,
    back=SWEEP.back,
    signature="(l,n),(l,n),(l,p),(l,n),(l)->(l,p)",
    inputs={"q": queries, "k": keys, "v": real_signals, "log_g": log_gates, "beta": betas},
    batch="b g, b g, b g h, b g h, b g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "q->y"),
    contract=COLUMNS,
    doc="""y_t = S_tᵀ q_t,  S_t = (I − β_t k_t k_tᵀ) a_t S_{t-1} + β_t k_t v_tᵀ,
    a = diag(e^{log_g}), from rest.

    Signature ``(l,n),(l,n),(l,p),(l,n),(l)->(l,p)``: `q` the queries of one head, scaled before,
    `k` its keys, `v` its values, `log_g` the natural logarithms of its gates, at most 0, one for
    each key, `beta` the rates; `l` time, `n` keys, `p` values; leading axes broadcast: heads of a
    group are a leading axis, which has length 1 in shared `q` and `k`. Head h of H belongs to
    group h // (H/G): neighbours share. The state decays first: the delta rule corrects what is left
    of it. Any of float32, float64 and longdouble; the result has their ``np.result_type``. Nothing
    is normalised or clipped: the state stays bounded for 0 ≤ β‖k‖² ≤ 2. Units: k, β and log_g have
    none, `y` those of q·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [kimi2025linear, §3.1].
    """,
    vjp_doc="""G_t = q_t dy_tᵀ + a_{t+1} (I − β_{t+1} k_{t+1} k_{t+1}ᵀ) G_{t+1} with a =
    diag(e^{log_g});  with Z_t = a_t S_{t-1}, r_t = v_t − Z_tᵀ k_t and w_t = G_tᵀ k_t:
    dq_t = S_t dy_t,  dk_t = β_t (G_t r_t − Z_t w_t),  dv_t = β_t w_t,  dbeta_t = r_t · w_t,
    dlog_g_t = Σ_p Z_t ∘ (G_t − β_t k_t w_tᵀ).""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.kimi_delta_rule(one, one, [[1.0], [2.0]], [[0.0], [0.0]], [1.0, 0.5]).ravel()
        array([1. , 1.5])
        """,
        "stateful": """
        >>> refssm.kimi_delta_rule_stateful([[2.0]], [[1.0]], [[1.0]], [[0.0]], [0.5], [[4.0]])
        (array([[5.]]), array([[2.5]]))
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> g, beta = [[0.0], [0.0]], [0.5, 0.5]
        >>> refssm.kimi_delta_rule_packed(one, one, one, g, beta, [False, True]).ravel()
        array([0.5, 0.5])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.kimi_delta_rule_packed_stateful(
        ...     one, one, one, [[0.0], [0.0]], [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.kimi_delta_rule_states(
        ...     one, one, one, [[0.0], [0.0]], [0.5, 0.5], [[4.0]], [0, 1])
        >>> S.ravel()
        array([4. , 2.5])
        """,
    },
    citation="kimi2025linear, §3.1",
    citation_of_packed="kimi2025linear, §3.1",
    tags={
        "plain": ("KDA", "Kimi delta attention", "fused_recurrent_kda", "naive_recurrent_kda"),
        "stateful": ("KDA output_final_state", "Kimi Linear prefill"),
        "packed": ("KDA varlen cu_seqlens",),
        "packed_stateful": ("KDA varlen initial states",),
        "states": ("KDA with states at places",),
        "step": ("KDA decoding", "Kimi Linear decoding"),
    },
)
(
    KIMI_DELTA_RULE,
    KIMI_DELTA_RULE_STATEFUL,
    KIMI_DELTA_RULE_PACKED,
    KIMI_DELTA_RULE_PACKED_STATEFUL,
    KIMI_DELTA_RULE_STATES,
    KIMI_DELTA_STEP,
) = KIMI.operators
(
    (kimi_delta_rule, kimi_delta_rule_vjp),
    (kimi_delta_rule_stateful, kimi_delta_rule_stateful_vjp),
    (kimi_delta_rule_packed, kimi_delta_rule_packed_vjp),
    (kimi_delta_rule_packed_stateful, kimi_delta_rule_packed_stateful_vjp),
    (kimi_delta_rule_states, kimi_delta_rule_states_vjp),
    (kimi_delta_step, kimi_delta_step_vjp),
) = KIMI.public()
