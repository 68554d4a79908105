"""The delta rule: each step replaces what the state recalls for its key by its value.

    S_t = S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀ k_t)ᵀ,    y_t = S_tᵀ q_t

One head of DeltaNet [yang2024delta, §2.2]: a step of gradient descent on ½‖Sᵀk − v‖² with rate β.
The state is multiplied by M_t = I − β_t k_t k_tᵀ, whose norm is at most 1 for 0 ≤ β‖k‖² ≤ 2: with
β‖k‖² = 1 the old value is forgotten, with 2 it is reflected. First one step, as in decoding; the
other forms follow from it.
"""

from refssm._declaration.contract import COLUMNS
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import betas, keys, queries, real_signals, real_states
from refssm.linear_attention.sweep import Sweep
from refssm.scan.linear import MARKS


def written(k, v, beta, S):
    """S + β k (v − Sᵀ k)ᵀ."""
    missing = v - einsum("...np,...n->...p", S, k)
    return S + k[..., :, None] * (beta[..., None] * missing)[..., None, :]


def written_back(G, k, v, beta, S):
    """With r = v − Sᵀ k and w = Gᵀ k:  dk = β (G r − S w),  dv = β w,  dβ = r · w,
    dS = G − k dvᵀ. G is the cotangent of the state after it was written."""
    r = v - einsum("...np,...n->...p", S, k)
    w = einsum("...np,...n->...p", G, k)
    by_r, by_w = einsum("...np,...p->...n", G, r), einsum("...np,...p->...n", S, w)
    dv = beta[..., None] * w
    return beta[..., None] * (by_r - by_w), dv, (r * w).sum(-1), reflected(G, k, beta)


def reflected(G, k, beta):
    """(I − β k kᵀ) G."""
    dv = beta[..., None] * einsum("...np,...n->...p", G, k)
    return G - k[..., :, None] * dv[..., None, :]


def _ready(k, v, beta):
    """A step needs nothing that could be made for several at once."""
    return k, v, beta


def _before(G, k, v, beta):
    return reflected(G, k, beta)


def delta_step(q, k, v, beta, S):
    """S ← S + β k (v − Sᵀ k)ᵀ,  y = Sᵀ q: one step, and the next state.

    Signature ``(n),(n),(p),(),(n,p)->(p),(n,p)``: as one step of `delta_rule_stateful`; types,
    units and errors are the same. Source: [yang2024delta, §2.2].

    >>> import refssm
    >>> refssm.delta_step([2.0], [1.0], [1.0], 0.5, [[4.0]])
    (array([5.]), array([[2.5]]))
    """
    S = written(k, v, beta, S)
    y = einsum("...np,...n->...p", S, q)
    return y, with_batch(S, 2, y.shape[:-1])


def delta_step_vjp(dy, dS_next, q, k, v, beta, S):
    """G = q dyᵀ + dS',  r = v − Sᵀ k,  w = Gᵀ k;  dq = S' dy,  dk = β (G r − S w),  dv = β w,
    dβ = r · w,  dS = G − β k wᵀ.

    Returns `(dq, dk, dv, dbeta, dS)`, shaped like the arguments.
    """
    G = q[..., :, None] * dy[..., None, :] + dS_next
    dq = einsum("...np,...p->...n", written(k, v, beta, S), dy)
    return unbroadcast_each((dq, *written_back(G, k, v, beta, S)), (q, k, v, beta, S))


SWEEP = Sweep(
    _ready,
    written,
    _before,
    delta_step_vjp,
    ranks=(2, 2, 2, 1),
    ready_ranks=(2, 2, 1),
    gate=None,
)
DELTA = Recurrence(
    name="delta_rule",
    step=Pair(delta_step, delta_step_vjp),
    run=SWEEP.run,
    back=SWEEP.back,
    signature="(l,n),(l,n),(l,p),(l)->(l,p)",
    inputs={"q": queries, "k": keys, "v": real_signals, "beta": betas},
    batch="b g, b g, b g h, b g h",
    state=State("S", "n,p", "b g h", real_states),
    marks=MARKS,
    linear=("v", "q->y"),
    contract=COLUMNS,
    doc="""y_t = S_tᵀ q_t,  S_t = S_{t-1} + β_t k_t (v_t − S_{t-1}ᵀ k_t)ᵀ from rest.

    Signature ``(l,n),(l,n),(l,p),(l)->(l,p)``: `q` the queries of one head, scaled before, `k` its
    keys, `v` its values, `beta` the rates; `l` time, `n` keys, `p` values; leading axes broadcast:
    heads of a group are a leading axis, which has length 1 in shared `q` and `k`. Head h of H
    belongs to group h // (H/G): neighbours share. Any of float32, float64 and longdouble; the
    result has their ``np.result_type``. Nothing is normalised or clipped: the state stays bounded
    for 0 ≤ β‖k‖² ≤ 2. Units: k and β have none, `y` those of q·v.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [yang2024delta, §2.2].
    """,
    vjp_doc="""G_t = q_t dy_tᵀ + (I − β_{t+1} k_{t+1} k_{t+1}ᵀ) G_{t+1};  with r_t = v_t −
    S_{t-1}ᵀ k_t and w_t = G_tᵀ k_t:  dq_t = S_t dy_t,  dk_t = β_t (G_t r_t − S_{t-1} w_t),
    dv_t = β_t w_t,  dbeta_t = r_t · w_t.""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.delta_rule(one, one, [[1.0], [2.0]], [1.0, 0.5]).ravel()
        array([1. , 1.5])
        """,
        "stateful": """
        >>> refssm.delta_rule_stateful([[2.0]], [[1.0]], [[1.0]], [0.5], [[4.0]])
        (array([[5.]]), array([[2.5]]))
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.delta_rule_packed(one, one, one, [0.5, 0.5], [False, True]).ravel()
        array([0.5, 0.5])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.delta_rule_packed_stateful(
        ...     one, one, one, [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.delta_rule_states(one, one, one, [0.5, 0.5], [[4.0]], [0, 1])
        >>> S.ravel()
        array([4. , 2.5])
        """,
    },
    citation="yang2024delta, §2.2",
    citation_of_packed="yang2024delta, §2.2",
    tags={
        "plain": ("fused_recurrent_delta_rule", "delta_rule_recurrence", "DeltaNet"),
        "stateful": ("DeltaNet output_final_state", "delta rule with the last state"),
        "packed": ("DeltaNet varlen cu_seqlens",),
        "packed_stateful": ("DeltaNet varlen initial states",),
        "states": ("DeltaNet with states at places",),
        "step": ("DeltaNet decoding", "delta rule one step"),
    },
)
(
    DELTA_RULE,
    DELTA_RULE_STATEFUL,
    DELTA_RULE_PACKED,
    DELTA_RULE_PACKED_STATEFUL,
    DELTA_RULE_STATES,
    DELTA_STEP,
) = DELTA.operators
(
    (delta_rule, delta_rule_vjp),
    (delta_rule_stateful, delta_rule_stateful_vjp),
    (delta_rule_packed, delta_rule_packed_vjp),
    (delta_rule_packed_stateful, delta_rule_packed_stateful_vjp),
    (delta_rule_states, delta_rule_states_vjp),
    (delta_step, delta_step_vjp),
) = DELTA.public()
