"""Linear recurrences: the state update of every recurrent SSM [blelloch1990prefix, smith2023s5].

    x_k = a_k x_{k-1} + b_k

The recurrence is elementwise in the state: a diagonal system has one decay a_k per mode, and
b_k = B̄ u_k. First the scan from rest, then the scan from a given state.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast
from refssm.domains import decays, fixed_decays, signals, states


def linear_scan(a, b):
    """x_k = a_k x_{k-1} + b_k along time, from rest: x_{-1} = 0.

    Signature ``(l,n),(l,n)->(l,n)``: `a` the decays, `b` the inputs, `l` time, `n` state;
    leading axes broadcast. Any of float32, float64, longdouble and their complex types; the
    result has ``np.result_type(a, b)``. `x_0` is `b_0` and does not depend on `a_0`.
    Units: `a` has none, `b` and `x` share theirs.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [blelloch1990prefix, §1.4].

    >>> import refssm
    >>> refssm.linear_scan([[0.5], [0.5], [0.5]], [[1.0], [0.0], [2.0]]).ravel()
    array([1.  , 0.5 , 2.25])
    """
    a, b = np.broadcast_arrays(a, b)
    x = np.empty_like(b, dtype=np.result_type(a, b))
    x[..., :1, :] = b[..., :1, :]
    for k in range(1, x.shape[-2]):
        x[..., k, :] = a[..., k, :] * x[..., k - 1, :] + b[..., k, :]
    return x


def linear_scan_vjp(dx, a, b):
    """g_k = dx_k + a_{k+1}* g_{k+1};  db_k = g_k,  da_k = x_{k-1}* g_k,  da_0 = 0.

    The adjoint of the scan is the scan in reverse time, with conjugate decays.
    Returns `(da, db)`, shaped like `a` and `b`.
    """
    x, g = LINEAR_SCAN.reference(a, b), _adjoint_scan(dx, a, b)
    da = np.zeros_like(g)
    da[..., 1:, :] = x[..., :-1, :].conj() * g[..., 1:, :]
    return unbroadcast(da, a), unbroadcast(g, b)


def _adjoint_scan(dx, a, b):
    """g_k = dx_k + a_{k+1}* g_{k+1}, computed from the end."""
    a, dx = np.broadcast_arrays(a, dx)
    g = np.empty_like(dx, dtype=np.result_type(dx, a, b))
    g[..., -1:, :] = dx[..., -1:, :]
    for k in range(g.shape[-2] - 2, -1, -1):
        g[..., k, :] = a[..., k + 1, :].conj() * g[..., k + 1, :] + dx[..., k, :]
    return g


LINEAR_SCAN = Operator(
    reference=linear_scan,
    signature="(l,n),(l,n)->(l,n)",
    inputs={"a": decays, "b": signals},
    outputs=("x",),
    batch="b, b",
    traits=frozenset({"causal", "state", "linear:b"}),
    citation="blelloch1990prefix, §1.4",
    tags=(
        "associative_scan",
        "parallel scan",
        "pscan",
        "RG-LRU",
        "Griffin",
        "binary_operator",
        "accelerated_scan",
        "minGRU",
        "heinsen_associative_scan_log",
        "first-order recurrence",
    ),
)
linear_scan = LINEAR_SCAN.checked(linear_scan)
linear_scan_vjp = LINEAR_SCAN.checked_vjp(linear_scan_vjp)


def linear_scan_from(a, b, x0):
    """x_k = a_k x_{k-1} + b_k along time, from the state x_{-1} = x0.

    Signature ``(l,n),(l,n),(n)->(l,n)``: as `linear_scan`, with the state `x0` before the first
    input, in the units of `b`. A long scan may be split anywhere: the last state of one piece is
    the `x0` of the next. Types and errors are those of `linear_scan`. Source: [blelloch1990prefix,
    §1.4].

    >>> import refssm
    >>> refssm.linear_scan_from([[0.5], [0.5]], [[0.0], [2.0]], [1.0]).ravel()
    array([0.5 , 2.25])
    """
    a, b, _ = np.broadcast_arrays(a, b, x0[..., None, :])
    x = np.empty_like(b, dtype=np.result_type(a, b, x0))
    state = x0
    for k in range(x.shape[-2]):
        x[..., k, :] = state = a[..., k, :] * state + b[..., k, :]
    return x


def linear_scan_from_vjp(dx, a, b, x0):
    """g_k = dx_k + a_{k+1}* g_{k+1};  db_k = g_k,  da_k = x_{k-1}* g_k,  dx0 = a_0* g_0.

    Returns `(da, db, dx0)`, shaped like `a`, `b` and `x0`.
    """
    g = _adjoint_scan(dx, a, b)
    start, _ = np.broadcast_arrays(x0[..., None, :], g[..., :1, :])
    before = np.concatenate([start, LINEAR_SCAN_FROM.reference(a, b, x0)[..., :-1, :]], axis=-2)
    da = before.conj() * g
    decay, _ = np.broadcast_arrays(a, g)
    dx0 = np.sum(decay[..., :1, :].conj() * g[..., :1, :], axis=-2)
    return unbroadcast(da, a), unbroadcast(g, b), unbroadcast(dx0, x0)


LINEAR_SCAN_FROM = Operator(
    reference=linear_scan_from,
    signature="(l,n),(l,n),(n)->(l,n)",
    form="from",
    inputs={"a": decays, "b": signals, "x0": states},
    outputs=("x",),
    batch="b, b, b",
    traits=frozenset({"causal", "state", "linear:b,x0"}),
    citation="blelloch1990prefix, §1.4",
    tags=("rnn_scan", "linear recurrence from an initial state h0", "LRU recurrence"),
)
linear_scan_from = LINEAR_SCAN_FROM.checked(linear_scan_from)
linear_scan_from_vjp = LINEAR_SCAN_FROM.checked_vjp(linear_scan_from_vjp)


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


LINEAR_STEP = Operator(
    reference=linear_step,
    signature="(n),(n),(n)->(n)",
    form="step",
    inputs={"a": fixed_decays, "b": signals, "x": states},
    outputs=("x_next",),
    batch="b, b, b",
    traits=frozenset({"linear:b,x"}),
    citation="blelloch1990prefix, §1.4",
    tags=("one step of a linear recurrence", "RG-LRU decoding"),
)
linear_step = LINEAR_STEP.checked(linear_step)
linear_step_vjp = LINEAR_STEP.checked_vjp(linear_step_vjp)
