"""State-space duality as a recurrence: the state is a matrix with one decay per step.

    S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ,    y_t = S_t C_t

One head of Mamba-2 [dao2024mamba2, §5]; `p` is the head's size, `n` the state's. With log_a = 0 it
is linear attention (C queries, B keys, x values), with a constant one RetNet. First one step, as in
decoding; the other forms follow from it.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.domains import log_decays, projections, signals, states
from refssm.scan.blocks import backwards, joined, no_resets, windows
from refssm.scan.linear import MARKS


def ssd_step(x, log_a, B, C, S):
    """S ← e^{log_a} S + x Bᵀ,  y = S C: one step, and the next state.

    Signature ``(p),(),(n),(n),(p,n)->(p),(p,n)``: as one step of `ssd_recurrent_stateful`. Source:
    [dao2024mamba2, §3.2].

    >>> import refssm
    >>> refssm.ssd_step([1.0], 0.0, [1.0], [2.0], [[4.0]])
    (array([10.]), array([[5.]]))
    """
    S = np.exp(log_a)[..., None, None] * S + x[..., :, None] * B[..., None, :]
    y = einsum("...pn,...n->...p", S, C)
    return y, with_batch(S, 2, y.shape[:-1])


def ssd_step_vjp(dy, dS_next, x, log_a, B, C, S):
    """G = dy Cᴴ + dS';  dx = G B*,  dlog_a = Σ (a S)* G,  dB = Gᵀ x*,  dC = S'ᴴ dy,  dS = a* G.

    Returns `(dx, dlog_a, dB, dC, dS)`, shaped like the arguments.
    """
    a = np.exp(log_a)[..., None, None]
    G = dy[..., :, None] * C[..., None, :].conj() + dS_next
    after = a * S + x[..., :, None] * B[..., None, :]
    gradients = (
        einsum("...pn,...n->...p", G, B.conj()),
        ((a * S).conj() * G).sum((-2, -1)),
        einsum("...pn,...p->...n", G, x.conj()),
        einsum("...pn,...p->...n", after.conj(), dy),
        a.conj() * G,
    )
    return unbroadcast_each(gradients, (x, log_a, B, C, S))


def _run(arguments, S0, resets):
    """The outputs, and the last state if there is a first one."""
    x, log_a, B, C = arguments
    start, begun = started(arguments, S0, resets)
    y, S = stepped(x, log_a, B, C, start, begun)
    return ended(y, S, arguments, S0, start, begun)


def started(arguments, S0, resets):
    """The state and the resets of a run, where None means rest, or one sequence."""
    x, _, B, _ = arguments
    rest = at_rest(x, B)
    if resets is None:
        return rest if S0 is None else S0, no_resets(x.shape[-2])
    batch = np.broadcast_shapes(rest.shape[:-2], resets.shape[:-1])
    return with_batch(rest, 2, batch) if S0 is None else S0, resets


def ended(y, S, arguments, S0, start, resets):
    """The results of a run."""
    x, log_a, B, C = arguments
    y = outputs_of(y, x, log_a, B, C, start, resets)
    return (y,) if S0 is None else (y, full_state(S, x, log_a, B, C))


def back(cotangents, arguments, S0, resets):
    """Gradients for the arguments and S0."""
    x, log_a, B, C = arguments
    rest = at_rest(x, B)
    dy, dS = (*cotangents, rest)[:2]
    S0 = rest if S0 is None else S0
    resets = no_resets(x.shape[-2]) if resets is None else resets
    gradients = pulled_back(dy, dS, x, log_a, B, C, S0, resets)
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


def stepped(x, log_a, B, C, S, resets):
    """All outputs, and the last state; the outputs of √l steps are read at once."""
    y, batch = [], np.broadcast_shapes(batch_of(x, log_a, B, C, S), resets.shape[:-1])
    S = with_batch(S, 2, batch) if x.shape[-2] else S
    for w in windows(x.shape[-2]):
        a, read = np.exp(log_a[..., w])[..., None, None], C[..., w, :]
        write, begun, states = x[..., w, :, None] * B[..., w, None, :], resets[..., w], []
        for t in range(begun.shape[-1]):
            before = a[..., t, :, :] * S
            if begun[..., t].any():  # selected, so NaN does not pass
                before = np.where(begun[..., t, None, None], 0, before)
            S = before + write[..., t, :, :]
            states.append(S)
        rows = einsum("...pn,...n->...p", np.stack(states, axis=-3), read)
        y += [rows[..., t, :] for t in range(len(states))]
    return y, S


def outputs_of(y, x, log_a, B, C, S, resets):
    """A list of outputs as one array (…, l, p)."""
    batch = np.broadcast_shapes(batch_of(x, log_a, B, C, S), resets.shape[:-1])
    if y:
        return with_batch(np.stack(y, axis=-2), 2, batch)
    return np.zeros((*batch, 0, x.shape[-1]), np.result_type(x, log_a, B, C, S))


def full_state(S, x, log_a, B, C):
    """A copy of S with all batch axes, in the type of a state after one step."""
    kind = np.result_type(x, log_a, B, S)
    return with_batch(S.astype(kind), 2, batch_of(x, log_a, B, C, S))


def batch_of(x, log_a, B, C, S):
    """The broadcast leading axes."""
    leading = (log_a.shape[:-1], *(a.shape[:-2] for a in (x, B, C, S)))
    return np.broadcast_shapes(*leading)


def at_rest(x, B):
    """A state of zeros."""
    batch = np.broadcast_shapes(x.shape[:-2], B.shape[:-2])
    return np.zeros_like(x, shape=(*batch, x.shape[-1], B.shape[-1]))


def pulled_back(dy, dS, x, log_a, B, C, S0, resets):
    """Gradients from outputs and last state; computes the state again block by block.

    The state is a vector of p·n numbers there (`refssm.scan.blocks`). Within each block, dB and dC
    are summed over the heads that share `B` and `C`.
    """
    l, p, n = x.shape[-2], x.shape[-1], B.shape[-1]
    batch = np.broadcast_shapes(batch_of(x, log_a, B, C, S0), resets.shape[:-1])
    batch = np.broadcast_shapes(batch, dy.shape[:-2], dS.shape[:-2])
    kind = np.result_type(dy, dS, x, log_a, B, C, S0)
    a, resets = np.broadcast_to(np.exp(log_a), (*batch, l)), np.broadcast_to(resets, (*batch, l))
    start, carried = (
        np.broadcast_to(c, (*batch, p, n)).copy().reshape(*batch, p * n) for c in (S0, dS)
    )

    def filled(x, w):
        return np.broadcast_to(x, (*batch, w.stop - w.start, p * n))

    steps = (
        lambda w: filled(a[..., w, None], w),
        lambda w: filled(_outer(x[..., w, :], B[..., w, :]), w),
        lambda w: filled(_outer(dy[..., w, :], C[..., w, :].conj()), w),
    )
    parts = []
    for block in backwards(*steps, resets, start, carried, l):
        w, carried = block.window, block.carried
        before, S, G = (c.reshape(*c.shape[:-1], p, n) for c in (block.before, block.x, block.g))
        dlog_a = ((a[..., w, None, None] * before).conj() * G).sum((-2, -1))
        dlog_a = np.where(resets[..., w], 0, dlog_a) if resets[..., w].any() else dlog_a
        dx = einsum("...pn,...n->...p", G, B[..., w, :].conj())
        dB = unbroadcast(einsum("...pn,...p->...n", G, x[..., w, :].conj()), B[..., w, :])
        dC = unbroadcast(einsum("...pn,...p->...n", S.conj(), dy[..., w, :]), C[..., w, :])
        parts.append((dx, dlog_a[..., None], dB, dC))
    empty = ((*batch, 0, p), (*batch, 0, 1), B.shape, C.shape)
    dx, dlog_a, dB, dC = (
        joined([part[j] for part in parts], shape, kind) for j, shape in enumerate(empty)
    )
    return dx, dlog_a[..., 0], dB, dC, carried.reshape(*batch, p, n)


def _outer(x, B):
    """x_t B_tᵀ as a vector of p·n numbers."""
    product = x[..., :, None] * B[..., None, :]
    return product.reshape(*product.shape[:-2], x.shape[-1] * B.shape[-1])


SSD = Recurrence(
    name="ssd_recurrent",
    step=Pair(ssd_step, ssd_step_vjp),
    run=_run,
    back=back,
    signature="(l,p),(l),(l,n),(l,n)->(l,p)",
    inputs={"x": signals, "log_a": log_decays, "B": projections, "C": projections},
    batch="b g h, b g h, b g, b g",
    state=State("S", "p,n", "b g h", states),
    marks=MARKS,
    linear=("x", "B", "C->y"),
    doc="""y_t = S_t C_t,  S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ from rest.

    Signature ``(l,p),(l),(l,n),(l,n)->(l,p)``: `x` the inputs of one head, `log_a` the logarithms
    of its decays (Mamba-2's dt·A, with dt inside x too), `B` and `C` per step; `l` time, `p` head
    size, `n` state; leading axes broadcast: heads of a group are a leading axis, which has length 1
    in shared `B` and `C`. Head h of H belongs to group h // (H/G): neighbours share. Any of
    float32, float64, longdouble and their complex types; the result has their ``np.result_type``.
    Units: `log_a` has none, `y` those of x·B·C.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [dao2024mamba2, §3.2].
    """,
    vjp_doc="""G_t = dy_t C_tᴴ + a_{t+1}* G_{t+1} with a = e^{log_a};  dx_t = G_t B_t*,
    dB_t = G_tᵀ x_t*,  dC_t = S_tᴴ dy_t,  dlog_a_t = Σ (a_t S_{t-1})* G_t.""",
    examples={
        "plain": """
        >>> refssm.ssd_recurrent([[1.0], [2.0]], [0.0, 0.0], [[1.0], [1.0]], [[1.0], [1.0]]).ravel()
        array([1., 3.])
        """,
        "stateful": """
        >>> refssm.ssd_recurrent_stateful([[1.0]], [0.0], [[1.0]], [[2.0]], [[4.0]])
        (array([[10.]]), array([[5.]]))
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.ssd_recurrent_packed(one, [0.0, 0.0], one, one, [False, True]).ravel()
        array([1., 1.])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.ssd_recurrent_packed_stateful(
        ...     one, [0.0, 0.0], one, one, [[[4.0]], [[0.0]]], [1, 2])
        >>> y.ravel(), S.ravel()
        (array([5., 1.]), array([5., 1.]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.ssd_recurrent_states(one, [0.0, 0.0], one, one, [[4.0]], [0, 1])
        >>> S.ravel()
        array([4., 5.])
        """,
        "reversed": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.ssd_recurrent_reversed([[1.0], [2.0]], [0.0, 0.0], one, one).ravel()
        array([3., 2.])
        """,
    },
    citation="dao2024mamba2, §3.2",
    citation_of_packed="dao2024mamba2, §8.3",
    tags={
        "plain": ("fused_recurrent_simple_gla", "Mamba-2 recurrence", "SSD recurrence"),
        "stateful": ("Mamba-2 recurrence with the last state",),
        "packed": ("Mamba-2 recurrence varlen cu_seqlens",),
        "packed_stateful": ("Mamba-2 recurrence varlen initial states",),
        "states": ("Mamba-2 recurrence with states at places",),
        "reversed": ("Mamba-2 recurrence reverse", "simple GLA reverse"),
        "step": ("SSD one step", "SSD decoding"),
    },
)
(
    SSD_RECURRENT,
    SSD_RECURRENT_STATEFUL,
    SSD_RECURRENT_PACKED,
    SSD_RECURRENT_PACKED_STATEFUL,
    SSD_RECURRENT_STATES,
    SSD_RECURRENT_REVERSED,
    SSD_STEP,
) = SSD.operators
(
    (ssd_recurrent, ssd_recurrent_vjp),
    (ssd_recurrent_stateful, ssd_recurrent_stateful_vjp),
    (ssd_recurrent_packed, ssd_recurrent_packed_vjp),
    (ssd_recurrent_packed_stateful, ssd_recurrent_packed_stateful_vjp),
    (ssd_recurrent_states, ssd_recurrent_states_vjp),
    (ssd_recurrent_reversed, ssd_recurrent_reversed_vjp),
    (ssd_step, ssd_step_vjp),
) = SSD.public()
