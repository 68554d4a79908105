"""The selective scan: a diagonal system with time-dependent step size, input and output.

    x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k,    y_k = C_k · x_k

Mamba's recurrence for one channel, without its gate and softplus [gu2023mamba, Alg. 2]. B̄ = dt·B
is Euler's rule, but Ā = e^{dt A} is zero-order hold. First one step, as in decoding; the scans
follow from it.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm.domains import projections, rates, signals, states, step_sizes
from refssm.scan.blocks import backwards, joined, no_resets
from refssm.scan.linear import LINEAR, MARKS


def selective_step(u, dt, A, B, C, x):
    """x ← e^{dt A} x + dt u B,  y = C · x: one step, and the next state.

    Signature ``(),(),(n),(n),(n),(n)->(),(n)``: as one step of `selective_scan_stateful`. Types,
    units and errors are also the same. Source: [gu2023mamba, Alg. 2].

    >>> import refssm
    >>> refssm.selective_step(1.0, 2.0, [0.0], [1.0], [3.0], [4.0])
    (array(18.), array([6.]))
    """
    x = np.exp(dt[..., None] * A) * x + (dt * u)[..., None] * B
    y = (C * x).sum(-1)
    return y, with_batch(x, 1, y.shape)


def selective_step_vjp(dy, dx_next, u, dt, A, B, C, x):
    """g = C* dy + dx',  e = a* x* g;  du = Σ dt B* g,  ddt = Re Σ (u B)* g + A* e,  dA = dt e,
    dB = (dt u)* g,  dC = x'* dy,  dx = a* g.

    Returns `(du, ddt, dA, dB, dC, dx)`, shaped like the arguments.
    """
    a, step = np.exp(dt[..., None] * A), dt[..., None]
    drive = (dt * u)[..., None]
    g = C.conj() * dy[..., None] + dx_next
    e = (a * x).conj() * g
    ddt = ((u[..., None] * B).conj() * g + A.conj() * e).sum(-1)
    dC = (a * x + drive * B).conj() * dy[..., None]
    gradients = ((step * B).conj() * g).sum(-1), ddt, step * e, drive.conj() * g, dC, a.conj() * g
    return unbroadcast_each(gradients, (u, dt, A, B, C, x))


def discretized(u, dt, A, B):
    """e^{dt_k A} and dt_k u_k B_k, both (…, l, n)."""
    decay = np.exp(dt[..., None] * A[..., None, :])
    drive = (dt * u)[..., None] * B
    return np.broadcast_arrays(decay, drive)


def _run(arguments, x0, resets):
    """The outputs, and the last state if there is a first one."""
    u, dt, A, B, C = arguments
    (x,) = LINEAR.run(discretized(u, dt, A, B), x0, resets)
    y = (C * x).sum(-1)
    if x0 is None:
        return (y,)
    start = np.broadcast_to(x0[..., None, :], (*x.shape[:-2], 1, x.shape[-1]))
    return y, with_batch(np.concatenate([start, x], axis=-2)[..., -1, :], 1, y.shape[:-1])


def _back(cotangents, arguments, x0, resets):
    """Gradients for the arguments and x0."""
    rest, l = at_rest(*arguments), arguments[0].shape[-1]
    dy, dx = (*cotangents, rest)[:2]
    start, begun = rest if x0 is None else x0, no_resets(l) if resets is None else resets
    u, dt, A, B, C = arguments
    gradients = pulled_back(dy, dx, u, dt, A, B, C, start, begun)
    return unbroadcast_each(gradients, (u, dt, A, B, C, start))


def at_rest(u, dt, A, B, C):
    """A state of zeros."""
    batch = np.broadcast_shapes(
        u.shape[:-1], dt.shape[:-1], A.shape[:-1], B.shape[:-2], C.shape[:-2]
    )
    return np.zeros_like(A, shape=(*batch, A.shape[-1]))


def pulled_back(dy, dx, u, dt, A, B, C, x0, resets):
    """Gradients from the outputs and the last state; computes states again block by block.

    Within each block, dB and dC are summed over the axes that share `B` and `C`: the channels of a
    group.
    """
    l, n = u.shape[-1], A.shape[-1]
    leading = (*(a.shape[:-1] for a in (u, dt, A, x0, resets)), B.shape[:-2], C.shape[:-2])
    batch = np.broadcast_shapes(*leading, dy.shape[:-1], dx.shape[:-1])
    kind = np.result_type(dy, dx, u, dt, A, B, C, x0)
    u, dt, resets = (np.broadcast_to(a, (*batch, l)) for a in (u, dt, resets))
    start, carried = (np.broadcast_to(x, (*batch, n)).copy() for x in (x0, dx))

    def filled(x, w):
        return np.broadcast_to(x, (*batch, w.stop - w.start, n))

    steps = (
        lambda w: filled(np.exp(dt[..., w, None] * A[..., None, :]), w),
        lambda w: filled((dt * u)[..., w, None] * B[..., w, :], w),
        lambda w: filled(C[..., w, :].conj() * dy[..., w, None], w),
    )
    parts, dA = [], np.zeros_like(A, dtype=kind)
    for block in backwards(*steps, resets, start, carried, l):
        w, g, carried = block.window, block.g, block.carried
        e = (block.a * block.before).conj() * g
        e = np.where(resets[..., w, None], 0, e) if resets[..., w].any() else e
        dA = dA + np.sum(dt[..., w, None] * e, axis=-2)
        dB = unbroadcast((dt * u)[..., w, None].conj() * g, B[..., w, :])
        dC = unbroadcast(block.x.conj() * dy[..., w, None], C[..., w, :])
        parts.append((_channel_back(u, dt, A, B, w, g, e), dB, dC))
    both = joined([p[0] for p in parts], (*batch, 0, 2), kind)
    dB, dC = (joined([p[j] for p in parts], b.shape, b.dtype) for j, b in ((1, B), (2, C)))
    return both[..., 0], both[..., 1], dA, dB, dC, carried


def _channel_back(u, dt, A, B, w, g, e):
    """(du_k, ddt_k) of one window."""
    du = np.sum((dt[..., w, None] * B[..., w, :]).conj() * g, axis=-1)
    by_input = (u[..., w, None] * B[..., w, :]).conj() * g
    ddt = np.sum(by_input + A[..., None, :].conj() * e, axis=-1)
    return np.stack([du, ddt], axis=-1)


SELECTIVE = Recurrence(
    name="selective_scan",
    step=Pair(selective_step, selective_step_vjp),
    run=_run,
    back=_back,
    signature="(l),(l),(n),(l,n),(l,n)->(l)",
    inputs={"u": signals, "dt": step_sizes, "A": rates, "B": projections, "C": projections},
    batch="b g d, b g d, g d, b g, b g",
    state=State("x", "n", "b g d", states),
    marks=MARKS,
    linear=("u", "B", "C->y"),
    doc="""y_k = C_k · x_k,  x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k from rest.

    Signature ``(l),(l),(n),(l,n),(l,n)->(l)``: `u` the input of one channel, `dt` its step sizes,
    real and positive (0 keeps the state), `A` the rates with their sign, `B` and `C` per step; `l`
    time, `n` state; leading axes broadcast: channels of a group are a leading axis of `u`, `dt`,
    `A`, which has length 1 in shared `B` and `C`. Channel k of K belongs to group k // (K/G):
    neighbours share. Any of float32, float64, longdouble and their complex types, `dt` real; the
    result has their ``np.result_type``; no real part is used. Units: `dt` that of 1/`A`, `y` those
    of dt·u·B·C.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [gu2023mamba, Alg. 2].
    """,
    vjp_doc="""g_k = C_k* dy_k + a_{k+1}* g_{k+1} with a = e^{dt A};  e_k = a_k* x_{k-1}* g_k;
    du = Σ_n dt B* g,  ddt = Re Σ_n (u B)* g + A* e,  dA = Σ_k dt_k e_k,  dB = (dt u)* g,
    dC = x* dy.""",
    examples={
        "plain": """
        >>> B = C = [[1.0], [1.0]]
        >>> refssm.selective_scan([1.0, 0.0], [2.0, 0.5], [0.0], B, C)
        array([2., 2.])
        """,
        "stateful": """
        >>> refssm.selective_scan_stateful([1.0], [2.0], [0.0], [[1.0]], [[3.0]], [4.0])
        (array([18.]), array([6.]))
        """,
        "packed": """
        >>> B = C = [[1.0], [1.0], [1.0]]
        >>> refssm.selective_scan_packed([1.0] * 3, [1.0] * 3, [0.0], B, C, [False, False, True])
        array([1., 2., 1.])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.selective_scan_packed_stateful(
        ...     [1.0, 1.0], [1.0, 1.0], [0.0], one, one, [[4.0], [0.0]], [1, 2])
        (array([5., 1.]), array([[5.],
               [1.]]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, x = refssm.selective_scan_states(
        ...     [1.0, 1.0], [1.0, 1.0], [0.0], one, one, [4.0], [0, 1])
        >>> x.ravel()
        array([4., 5.])
        """,
        "reversed": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.selective_scan_reversed([1.0, 1.0], [2.0, 0.5], [0.0], one, one)
        array([2.5, 0.5])
        """,
    },
    citation="gu2023mamba, Alg. 2",
    citation_of_packed="lu2023structured",
    tags={
        "plain": (
            "S6",
            "selective scan without gate or skip",
            "mamba minimal",
            "Mamba recurrence",
            "delta A B C",
            "VMamba scan of four directions",
        ),
        "stateful": ("selective scan with the last state",),
        "packed": ("selective scan varlen", "selective scan cu_seqlens"),
        "packed_stateful": (
            "selective scan varlen initial states",
            "selective scan with a state for each packed sequence",
        ),
        "states": (
            "selective scan with states at places",
            "selective scan checkpoints of the state",
        ),
        "reversed": ("selective scan reverse", "backward half of Vision Mamba"),
        "step": ("S6 one step",),
    },
)
(
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_PACKED_STATEFUL,
    SELECTIVE_SCAN_STATES,
    SELECTIVE_SCAN_REVERSED,
    SELECTIVE_STEP,
) = SELECTIVE.operators
(
    (selective_scan, selective_scan_vjp),
    (selective_scan_stateful, selective_scan_stateful_vjp),
    (selective_scan_packed, selective_scan_packed_vjp),
    (selective_scan_packed_stateful, selective_scan_packed_stateful_vjp),
    (selective_scan_states, selective_scan_states_vjp),
    (selective_scan_reversed, selective_scan_reversed_vjp),
    (selective_step, selective_step_vjp),
) = SELECTIVE.public()
