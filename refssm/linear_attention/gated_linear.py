"""Gated linear attention: a state of keys × values, with a decay for each key and step.

    S_t = diag(e^{log_g_t}) S_{t-1} + k_t v_tᵀ,    y_t = S_tᵀ q_t

One head of GLA [yang2023gla, §4]; HGRN-2 is k = 1 − e^{log_g}. `log_g` is the natural logarithm of
the gate, at most 0. With the same gate for all keys it is `ssd_recurrent`, with x = v, B = k, C = q
and its state transposed. First one step, as in decoding; the other forms follow from it.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import keys, log_gates, queries, real_signals, real_states
from refssm.linear_attention.sweep import Sweep
from refssm.scan.linear import MARKS


def _ready(k, v, log_g):
    """e^{log_g} as a column, and k vᵀ."""
    return np.exp(log_g)[..., :, None], k[..., :, None] * v[..., None, :]


def _after(a, write, S):
    """diag(a) S + k vᵀ."""
    return a * S + write


def _before(G, a, write):
    """diag(a) G."""
    del write
    return a * G


def gated_linear_step(q, k, v, log_g, S):
    """S ← diag(e^{log_g}) S + k vᵀ,  y = Sᵀ q: one step, and the next state.

    Signature ``(n),(n),(p),(n),(n,p)->(p),(n,p)``: as one step of
    `gated_linear_recurrence_stateful`; types, units and errors are the same. Source:
    [yang2023gla, §4].

    >>> import refssm
    >>> refssm.gated_linear_step([2.0], [1.0], [1.0], [0.0], [[4.0]])
    (array([10.]), array([[5.]]))
    """
    S = _after(*_ready(k, v, log_g), S)
    y = einsum("...np,...n->...p", S, q)
    return y, with_batch(S, 2, y.shape[:-1])


def gated_linear_step_vjp(dy, dS_next, q, k, v, log_g, S):
    """G = q dyᵀ + dS';  dq = S' dy,  dk = G v,  dv = Gᵀ k,  dlog_g_n = Σ_p (a S) ∘ G,  dS = a G,
    with a = diag(e^{log_g}).

    Returns `(dq, dk, dv, dlog_g, dS)`, shaped like the arguments.
    """
    a, write = _ready(k, v, log_g)
    G = q[..., :, None] * dy[..., None, :] + dS_next
    gradients = (
        einsum("...np,...p->...n", _after(a, write, S), dy),
        einsum("...np,...p->...n", G, v),
        einsum("...np,...n->...p", G, k),
        (a * S * G).sum(-1),
        a * G,
    )
    return unbroadcast_each(gradients, (q, k, v, log_g, S))


SWEEP = Sweep(
    _ready,
    _after,
    _before,
    gated_linear_step_vjp,
    ranks=(2, 2, 2, 2),
    ready_ranks=(3, 3),
    gate=3,
)
GATED_LINEAR = Recurrence(
    name="gated_linear_recurrence",
    step=Pair(gated_linear_step, gated_linear_step_vjp),
    run=SWEEP.run,
    back=SWEEP.back,
    signature="(l,n),(l,n),(l,p),(l,n)->(l,p)",
    inputs={"q": queries, "k": keys, "v": real_signals, "log_g": log_gates},
    batch="b g, b g, b g h, b g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "k", "q->y"),
    doc="""y_t = S_tᵀ q_t,  S_t = diag(e^{log_g_t}) S_{t-1} + k_t v_tᵀ from rest.

    Signature ``(l,n),(l,n),(l,p),(l,n)->(l,p)``: `q` the queries of one head, scaled before, `k`
    its keys, `v` its values, `log_g` the natural logarithms of the gates, at most 0; `l` time, `n`
    keys, `p` values; leading axes broadcast: heads of a group are a leading axis, which has length
    1 in shared `q` and `k`. Head h of H belongs to group h // (H/G): neighbours share. Any of
    float32, float64 and longdouble; the result has their ``np.result_type``. Units: `log_g` has
    none, `y` those of q·k·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2023gla, §4].
    """,
    vjp_doc="""G_t = q_t dy_tᵀ + a_{t+1} G_{t+1} with a = diag(e^{log_g});  dq_t = S_t dy_t,
    dk_t = G_t v_t,  dv_t = G_tᵀ k_t,  dlog_g_t = Σ_p (a_t S_{t-1}) ∘ G_t.""",
    examples={
        "plain": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.gated_linear_recurrence(one, one, [[1.0], [2.0]], g).ravel()
        array([1., 3.])
        """,
        "stateful": """
        >>> refssm.gated_linear_recurrence_stateful([[2.0]], [[1.0]], [[1.0]], [[0.0]], [[4.0]])
        (array([[10.]]), array([[5.]]))
        """,
        "packed": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.gated_linear_recurrence_packed(one, one, one, g, [False, True]).ravel()
        array([1., 1.])
        """,
        "packed_stateful": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.gated_linear_recurrence_packed_stateful(
        ...     one, one, one, g, [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([5., 1.]), array([5., 1.]))
        """,
        "states": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.gated_linear_recurrence_states(one, one, one, g, [[4.0]], [0, 1])
        >>> S.ravel()
        array([4., 5.])
        """,
    },
    citation="yang2023gla, §4",
    citation_of_packed="yang2023gla, §4",
    tags={
        "plain": ("fused_recurrent_gla", "naive_recurrent_gla", "GLA", "HGRN2"),
        "stateful": (
            "GLA output_final_state",
            "gated linear attention with the last state",
            "ggml_gated_linear_attn",
        ),
        "packed": ("GLA varlen cu_seqlens",),
        "packed_stateful": ("GLA varlen initial states",),
        "states": ("GLA with states at places",),
        "step": ("GLA decoding", "gated linear attention one step"),
    },
)
(
    GATED_LINEAR_RECURRENCE,
    GATED_LINEAR_RECURRENCE_STATEFUL,
    GATED_LINEAR_RECURRENCE_PACKED,
    GATED_LINEAR_RECURRENCE_PACKED_STATEFUL,
    GATED_LINEAR_RECURRENCE_STATES,
    GATED_LINEAR_STEP,
) = GATED_LINEAR.operators
(
    (gated_linear_recurrence, gated_linear_recurrence_vjp),
    (gated_linear_recurrence_stateful, gated_linear_recurrence_stateful_vjp),
    (gated_linear_recurrence_packed, gated_linear_recurrence_packed_vjp),
    (gated_linear_recurrence_packed_stateful, gated_linear_recurrence_packed_stateful_vjp),
    (gated_linear_recurrence_states, gated_linear_recurrence_states_vjp),
    (gated_linear_step, gated_linear_step_vjp),
) = GATED_LINEAR.public()
