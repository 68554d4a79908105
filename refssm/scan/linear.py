"""Linear recurrences: the state update of every recurrent SSM [blelloch1990prefix, smith2023s5].

    x_k = a_k x_{k-1} + b_k

The recurrence is elementwise in the state: a diagonal system has one decay a_k per mode, and
b_k = B̄ u_k. First one step; the scans from rest, from a state and of packed sequences follow. At a
reset, where a packed sequence begins, x_k = b_k. A decay of zero would do the same for finite
numbers. Here the state is selected, not multiplied, so no NaN or infinity of one sequence reaches
the next [blelloch1990prefix, lu2023structured].
"""

import numpy as np

from refssm._declaration.recurrence import Marks, Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.domains import (
    decays,
    fixed_decays,
    places,
    resets,
    sequence_ends,
    signals,
    states,
)

MARKS = Marks(resets, sequence_ends, places)


def linear_step(a, b, x):
    """x ← a x + b, one step of the scan.

    Signature ``(n),(n),(n)->(n)``: the decay, the input and the state before; leading axes
    broadcast. Returns the state after. Units, types and errors are those of `linear_scan`. Source:
    [blelloch1990prefix, §1.4].

    >>> import refssm
    >>> refssm.linear_step([0.5], [2.0], [0.5])
    array([2.25])
    """
    return a * x + b


def linear_step_vjp(dx_next, a, b, x):
    """da = x* dx',  db = dx',  dx = a* dx'.

    Returns `(da, db, dx)`, shaped like `a`, `b` and `x`.
    """
    db = dx_next.astype(np.result_type(dx_next, a, b, x))  # sum in the arguments' precision
    return unbroadcast(x.conj() * db, a), unbroadcast(db, b), unbroadcast(a.conj() * db, x)


def _kept(state, resets, k):
    """The state before step k, or 0 where a sequence begins: selected, not multiplied."""
    return state if resets is None else np.where(resets[..., k, None], 0, state)


def _run(arguments, x0, resets):
    """All states; from rest, x_0 is b_0 and does not depend on a_0."""
    a, b = np.broadcast_arrays(*arguments)
    others = (v.shape[:-1] for v in (x0, resets) if v is not None)
    batch = np.broadcast_shapes(b.shape[:-2], *others)
    a, b = (np.broadcast_to(c, (*batch, *c.shape[-2:])) for c in (a, b))
    x = np.empty_like(b, dtype=np.result_type(a, b, *([] if x0 is None else [x0])))
    x[..., :1, :] = b[..., :1, :]
    for k in range(x0 is None, x.shape[-2]):
        state = a[..., k, :] * (x[..., k - 1, :] if k else x0)
        x[..., k, :] = _kept(state, resets, k) + b[..., k, :]
    return (x,)


def _back(cotangents, arguments, x0, resets):
    """Gradients for a, b and x0: the adjoint of the scan is the scan in reverse time."""
    (dx,), (a, b) = cotangents, arguments
    x = _run(arguments, x0, resets)[0]
    decay, dx = np.broadcast_arrays(a, dx)
    g = np.empty_like(dx, dtype=np.result_type(dx, a, b))
    g[..., -1:, :] = dx[..., -1:, :]
    for k in range(g.shape[-2] - 1, 0, -1):
        carried = _kept(decay[..., k, :].conj() * g[..., k, :], resets, k)
        g[..., k - 1, :] = carried + dx[..., k - 1, :]
    da = np.zeros_like(g)
    da[..., 1:, :] = _kept(x[..., :-1, :].conj() * g[..., 1:, :], resets, slice(1, None))
    if x0 is None:
        return unbroadcast_each((da, g), (a, b))
    da[..., :1, :] = x0[..., None, :].conj() * g[..., :1, :]
    dx0 = np.sum(_kept(decay[..., :1, :].conj() * g[..., :1, :], resets, slice(1)), axis=-2)
    return unbroadcast_each((da, g, dx0), (a, b, x0))


LINEAR = Recurrence(
    name="linear_scan",
    step=Pair(linear_step, linear_step_vjp),
    run=_run,
    back=_back,
    signature="(l,n),(l,n)->(l,n)",
    inputs={"a": decays, "b": signals},
    step_inputs={"a": fixed_decays},
    outputs=("x",),
    batch="b, b",
    state=State("x", "n", "b", states),
    marks=MARKS,
    linear=("b",),
    doc="""x_k = a_k x_{k-1} + b_k along time, from rest.

    Signature ``(l,n),(l,n)->(l,n)``: `a` the decays, `b` the inputs, `l` time, `n` state;
    leading axes broadcast. Any of float32, float64, longdouble and their complex types; the
    result has ``np.result_type(a, b)``. `x_0` is `b_0` and does not depend on `a_0`.
    Units: `a` has none, `b` and `x` share theirs.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [blelloch1990prefix, §1.4].
    """,
    vjp_doc="""g_k = dx_k + a_{k+1}* g_{k+1};  db_k = g_k,  da_k = x_{k-1}* g_k,  da_0 = 0.

    The adjoint of the scan is the scan in reverse time, with conjugate decays.""",
    examples={
        "plain": """
        >>> refssm.linear_scan([[0.5], [0.5], [0.5]], [[1.0], [0.0], [2.0]]).ravel()
        array([1.  , 0.5 , 2.25])
        """,
        "stateful": """
        >>> refssm.linear_scan_from([[0.5], [0.5]], [[0.0], [2.0]], [1.0]).ravel()
        array([0.5 , 2.25])
        """,
        "packed": """
        >>> a, b = [[0.5], [0.5], [0.5]], [[1.0], [1.0], [1.0]]
        >>> refssm.linear_scan_packed(a, b, [False, False, True]).ravel()
        array([1. , 1.5, 1. ])
        """,
        "packed_stateful": """
        >>> a, b = [[0.5], [0.5], [0.5]], [[1.0], [1.0], [1.0]]
        >>> refssm.linear_scan_packed_from(a, b, [[4.0], [0.0]], [2, 3]).ravel()
        array([3. , 2.5, 1. ])
        """,
        "reversed": """
        >>> refssm.linear_scan_reversed([[0.5], [0.5]], [[1.0], [2.0]]).ravel()
        array([2., 2.])
        """,
    },
    citation="blelloch1990prefix, §1.4",
    citation_of_packed="blelloch1990prefix, §1.5",
    tags={
        "plain": (
            "associative_scan",
            "parallel scan",
            "pscan",
            "binary_operator",
            "accelerated_scan",
            "heinsen_associative_scan_log",
            "fused_recurrent_hgrn",
            "chunk_hgrn",
            "first-order recurrence",
        ),
        "stateful": ("rnn_scan", "linear recurrence from an initial state h0", "LRU recurrence"),
        "packed": ("rnn_scan reset", "binary_operator_reset", "linear scan varlen"),
        "packed_stateful": (
            "linear scan varlen cu_seqlens initial states",
            "linear scan with a state for each packed sequence",
        ),
        "reversed": ("associative_scan reverse=True", "reverse linear scan", "backward scan"),
        "step": ("one step of a linear recurrence",),
    },
)
(
    LINEAR_SCAN,
    LINEAR_SCAN_FROM,
    LINEAR_SCAN_PACKED,
    LINEAR_SCAN_PACKED_FROM,
    LINEAR_SCAN_REVERSED,
    LINEAR_STEP,
) = LINEAR.operators
(
    (linear_scan, linear_scan_vjp),
    (linear_scan_from, linear_scan_from_vjp),
    (linear_scan_packed, linear_scan_packed_vjp),
    (linear_scan_packed_from, linear_scan_packed_from_vjp),
    (linear_scan_reversed, linear_scan_reversed_vjp),
    (linear_step, linear_step_vjp),
) = LINEAR.public()
