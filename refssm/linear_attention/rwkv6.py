"""RWKV-6: gated linear attention that reads before it writes, with a bonus for the current step.

    y_t = (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ r_t,    S_t = diag(e^{log_w_t}) S_{t-1} + k_t v_tᵀ

One head of RWKV-6, "Finch" [peng2024eagle]; its code passes w with log_w = −e^w. `u` is the
same at all steps. First one step, as in decoding; the other forms follow from it (`reads_first`).
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import keys, log_gates, queries, real_signals, real_states
from refssm.linear_attention.gated_linear import SWEEP
from refssm.linear_attention.reads_first import ReadsFirst
from refssm.scan.linear import MARKS


def _outer(k, v):
    """k vᵀ."""
    return k[..., :, None] * v[..., None, :]


def rwkv6_step(r, k, v, log_w, u, S):
    """y = (S + diag(u) k vᵀ)ᵀ r,  S ← diag(e^{log_w}) S + k vᵀ: one step, and the next state.

    Signature ``(n),(n),(p),(n),(n),(n,p)->(p),(n,p)``: as one step of `rwkv6_stateful`; types,
    units and errors are the same. Source: [peng2024eagle].

    >>> import refssm
    >>> refssm.rwkv6_step([2.0], [1.0], [1.0], [0.0], [0.5], [[4.0]])
    (array([9.]), array([[5.]]))
    """
    y = einsum("...np,...n->...p", S + u[..., :, None] * _outer(k, v), r)
    S = np.exp(log_w)[..., :, None] * S + _outer(k, v)
    batch = np.broadcast_shapes(y.shape[:-1], S.shape[:-2])
    return with_batch(y, 1, batch), with_batch(S, 2, batch)


def rwkv6_step_vjp(dy, dS_next, r, k, v, log_w, u, S):
    """R = r dyᵀ, G = u ∘ R + dS';  dr = (S + diag(u) k vᵀ) dy,  dk = G v,  dv = Gᵀ k,
    dlog_w_n = Σ_p (a S) ∘ dS',  du = k ∘ (R v),  dS = R + a dS', with a = diag(e^{log_w}).

    Returns `(dr, dk, dv, dlog_w, du, dS)`, shaped like the arguments.
    """
    a, u_ = np.exp(log_w)[..., :, None], u[..., :, None]
    R = _outer(r, dy)
    G = u_ * R + dS_next
    gradients = (
        einsum("...np,...p->...n", S + u_ * _outer(k, v), dy),
        einsum("...np,...p->...n", G, v),
        einsum("...np,...n->...p", G, k),
        (a * S * dS_next).sum(-1),
        k * einsum("...np,...p->...n", R, v),
        R + a * dS_next,
    )
    return unbroadcast_each(gradients, (r, k, v, log_w, u, S))


FIRST = ReadsFirst(SWEEP.run, SWEEP.back)
RWKV6_RECURRENCE = Recurrence(
    name="rwkv6",
    step=Pair(rwkv6_step, rwkv6_step_vjp),
    run=FIRST.run,
    back=FIRST.back,
    signature="(l,n),(l,n),(l,p),(l,n),(n)->(l,p)",
    inputs={"r": queries, "k": keys, "v": real_signals, "log_w": log_gates, "u": queries},
    batch="b g, b g, b g h, b g h, g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "k", "r->y"),
    doc="""y_t = (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ r_t,  S_t = diag(w_t) S_{t-1} + k_t v_tᵀ from rest.

    w_t = e^{log_w_t}. Signature ``(l,n),(l,n),(l,p),(l,n),(n)->(l,p)``: `r` the receptances, or
    queries, of one head, `k` its keys, `v` its values, `log_w` the natural logarithms of the
    decays, at most 0, `u` the bonus of the current step for each key, the same at all steps; `l`
    time, `n` keys, `p` values; leading axes broadcast: heads of a group are a leading axis, which
    has length 1 in shared `r` and `k`. Any of float32, float64 and longdouble; the result has their
    ``np.result_type``. Units: `log_w` and `u` have none, `y` those of r·k·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [peng2024eagle].
    """,
    vjp_doc="""G_t = r_{t+1} dy_{t+1}ᵀ + a_{t+1} G_{t+1} with a = diag(e^{log_w}), and with
    H_t = G_t + diag(u) r_t dy_tᵀ:  dr_t = (S_{t-1} + diag(u) k_t v_tᵀ) dy_t,  dk_t = H_t v_t,
    dv_t = H_tᵀ k_t,  dlog_w_t = Σ_p (a_t S_{t-1}) ∘ G_t,  du = Σ_t k_t ∘ r_t (v_t · dy_t).""",
    examples={
        "plain": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.rwkv6(one, one, [[1.0], [2.0]], g, [0.5]).ravel()
        array([0.5, 2. ])
        """,
        "stateful": """
        >>> refssm.rwkv6_stateful([[2.0]], [[1.0]], [[1.0]], [[0.0]], [0.5], [[4.0]])
        (array([[9.]]), array([[5.]]))
        """,
        "packed": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.rwkv6_packed(one, one, one, g, [0.5], [False, True]).ravel()
        array([0.5, 0.5])
        """,
        "packed_stateful": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.rwkv6_packed_stateful(
        ...     one, one, one, g, [0.5], [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([4.5, 0.5]), array([5., 1.]))
        """,
        "states": """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.rwkv6_states(one, one, one, g, [0.5], [[4.0]], [0, 1])
        >>> S.ravel()
        array([4., 5.])
        """,
    },
    citation="peng2024eagle",
    citation_of_packed="peng2024eagle",
    tags={
        "plain": ("naive_recurrent_rwkv6", "fused_recurrent_rwkv6", "RWKV6", "Finch", "wkv6"),
        "stateful": ("RWKV6 output_final_state", "wkv6state", "ggml_rwkv_wkv6"),
        "packed": ("RWKV6 varlen cu_seqlens",),
        "packed_stateful": ("RWKV6 varlen initial states",),
        "states": ("RWKV6 with states at places",),
        "step": ("RWKV6 decoding", "RWKV6 one step"),
    },
)
(
    RWKV6,
    RWKV6_STATEFUL,
    RWKV6_PACKED,
    RWKV6_PACKED_STATEFUL,
    RWKV6_STATES,
    RWKV6_STEP,
) = RWKV6_RECURRENCE.operators
(
    (rwkv6, rwkv6_vjp),
    (rwkv6_stateful, rwkv6_stateful_vjp),
    (rwkv6_packed, rwkv6_packed_vjp),
    (rwkv6_packed_stateful, rwkv6_packed_stateful_vjp),
    (rwkv6_states, rwkv6_states_vjp),
    (rwkv6_step, rwkv6_step_vjp),
) = RWKV6_RECURRENCE.public()
