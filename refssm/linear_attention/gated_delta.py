"""The gated delta rule: the state decays, then the delta rule corrects what is left of it.

    S_t = (I − β_t k_t k_tᵀ) e^{log_g_t} S_{t-1} + β_t k_t v_tᵀ,    y_t = S_tᵀ q_t

One head of Gated DeltaNet [yang2024gated, §3.1], with one gate for a head; Qwen3-Next and
OLMo-Hybrid have it, too. With log_g = 0 it is `delta_rule`, with β = 0 only the decay is left.
First one step, as in decoding; the other forms follow from it.
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
    """k, v, e^{log_g} as a matrix of one entry, and β."""
    return k, v, np.exp(log_g)[..., None, None], beta


def _after(k, v, a, beta, S):
    """The delta rule for a S."""
    return written(k, v, beta, a * S)


def _before(G, k, v, a, beta):
    """a (I − β k kᵀ) G."""
    return a * reflected(G, k, beta)


def gated_delta_step(q, k, v, log_g, beta, S):
    """S ← e^{log_g} S,  S ← S + β k (v − Sᵀ k)ᵀ,  y = Sᵀ q: one step, and the next state.

    Signature ``(n),(n),(p),(),(),(n,p)->(p),(n,p)``: as one step of `gated_delta_rule_stateful`;
    types, units and errors are the same. Source: [yang2024gated, §3.1].

    >>> import refssm
    >>> refssm.gated_delta_step([2.0], [1.0], [1.0], 0.0, 0.5, [[4.0]])
    (array([5.]), array([[2.5]]))
    """
    S = _after(*_ready(k, v, log_g, beta), S)
    y = einsum("...np,...n->...p", S, q)
    return y, with_batch(S, 2, y.shape[:-1])


def gated_delta_step_vjp(dy, dS_next, q, k, v, log_g, beta, S):
    """G = q dyᵀ + dS',  Z = a S with a = e^{log_g},  r = v − Zᵀ k,  w = Gᵀ k;  dq = S' dy,
    dk = β (G r − Z w),  dv = β w,  dlog_g = Σ Z ∘ dZ,  dβ = r · w,  dS = a dZ,
    with dZ = G − β k wᵀ.

    Returns `(dq, dk, dv, dlog_g, dbeta, dS)`, shaped like the arguments.
    """
    a = np.exp(log_g)[..., None, None]
    G = q[..., :, None] * dy[..., None, :] + dS_next
    decayed = a * S
    dq = einsum("...np,...p->...n", written(k, v, beta, decayed), dy)
    dk, dv, dbeta, dZ = written_back(G, k, v, beta, decayed)
    dlog_g = (decayed * dZ).sum((-2, -1))
    return unbroadcast_each((dq, dk, dv, dlog_g, dbeta, a * dZ), (q, k, v, log_g, beta, S))


SWEEP = Sweep(
    _ready,
    _after,
    _before,
    gated_delta_step_vjp,
    ranks=(2, 2, 2, 1, 1),
    ready_ranks=(2, 2, 3, 1),
    gate=3,
)
GATED_DELTA = Recurrence(
    name="gated_delta_rule",
    step=Pair(gated_delta_step, gated_delta_step_vjp),
    run=SWEEP.run,
    back=SWEEP.back,
    signature="(l,n),(l,n),(l,p),(l),(l)->(l,p)",
    inputs={"q": queries, "k": keys, "v": real_signals, "log_g": log_gates, "beta": betas},
    batch="b g, b g, b g h, b g h, b g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "q->y"),
    contract=COLUMNS,
    doc="""y_t = S_tᵀ q_t,  S_t = (I − β_t k_t k_tᵀ) e^{log_g_t} S_{t-1} + β_t k_t v_tᵀ from rest.

    Signature ``(l,n),(l,n),(l,p),(l),(l)->(l,p)``: `q` the queries of one head, scaled before,
    `k` its keys, `v` its values, `log_g` the natural logarithms of its gates, at most 0,
    `beta` the rates; `l` time, `n` keys, `p` values; leading axes broadcast: heads of a group are a
    leading axis, which has length 1 in shared `q` and `k`. Head h of H belongs to group h // (H/G):
    neighbours share. The state decays first: the delta rule corrects what is left of it. Any of
    float32, float64 and longdouble; the result has their ``np.result_type``. Nothing is normalised
    or clipped: the state stays bounded for 0 ≤ β‖k‖² ≤ 2. Units: k, β and log_g have none, `y`
    those of q·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024gated, §3.1].
    """,
    vjp_doc="""G_t = q_t dy_tᵀ + a_{t+1} (I − β_{t+1} k_{t+1} k_{t+1}ᵀ) G_{t+1} with a =
    e^{log_g};  with Z_t = a_t S_{t-1}, r_t = v_t − Z_tᵀ k_t and w_t = G_tᵀ k_t:  dq_t = S_t dy_t,
    dk_t = β_t (G_t r_t − Z_t w_t),  dv_t = β_t w_t,  dbeta_t = r_t · w_t,
    dlog_g_t = Σ Z_t ∘ (G_t − β_t k_t w_tᵀ).""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.gated_delta_rule(one, one, [[1.0], [2.0]], [0.0, 0.0], [1.0, 0.5]).ravel()
        array([1. , 1.5])
        """,
        "stateful": """
        >>> refssm.gated_delta_rule_stateful([[2.0]], [[1.0]], [[1.0]], [0.0], [0.5], [[4.0]])
        (array([[5.]]), array([[2.5]]))
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> g, beta = [0.0, 0.0], [0.5, 0.5]
        >>> refssm.gated_delta_rule_packed(one, one, one, g, beta, [False, True]).ravel()
        array([0.5, 0.5])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.gated_delta_rule_packed_stateful(
        ...     one, one, one, [0.0, 0.0], [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.gated_delta_rule_states(
        ...     one, one, one, [0.0, 0.0], [0.5, 0.5], [[4.0]], [0, 1])
        >>> S.ravel()
        array([4. , 2.5])
        """,
    },
    citation="yang2024gated, §3.1",
    citation_of_packed="yang2024gated, §3.1",
    tags={
        "plain": (
            "gated delta rule",
            "Gated DeltaNet",
            "fused_recurrent_gated_delta_rule",
            "torch_recurrent_gated_delta_rule",
            "Qwen3-Next linear attention",
        ),
        "stateful": (
            "Gated DeltaNet output_final_state",
            "Gated DeltaNet prefill",
            "ggml_gated_delta_net",
            "gated_delta_ops",
            "gated_delta_update",
            "verify_delta_rule",
            "ref_gated_delta_rule",
        ),
        "packed": ("Gated DeltaNet varlen cu_seqlens",),
        "packed_stateful": ("Gated DeltaNet varlen initial states",),
        "states": ("Gated DeltaNet with states at places", "gated_delta_rule_mtp"),
        "step": (
            "Gated DeltaNet decoding",
            "Qwen3-Next decoding",
            "gated_delta_rule_decode",
            "decode_delta_rule",
        ),
    },
)
(
    GATED_DELTA_RULE,
    GATED_DELTA_RULE_STATEFUL,
    GATED_DELTA_RULE_PACKED,
    GATED_DELTA_RULE_PACKED_STATEFUL,
    GATED_DELTA_RULE_STATES,
    GATED_DELTA_STEP,
) = GATED_DELTA.operators
(
    (gated_delta_rule, gated_delta_rule_vjp),
    (gated_delta_rule_stateful, gated_delta_rule_stateful_vjp),
    (gated_delta_rule_packed, gated_delta_rule_packed_vjp),
    (gated_delta_rule_packed_stateful, gated_delta_rule_packed_stateful_vjp),
    (gated_delta_rule_states, gated_delta_rule_states_vjp),
    (gated_delta_step, gated_delta_step_vjp),
) = GATED_DELTA.public()
