"""Linear recurrences with a matrix: the state of a system that is not diagonal.

    x_k = A x_{k-1} + b_k

`A` is discrete, and constant in time or one matrix for each step. One step costs n²
multiplications; a diagonal system needs n.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm.domains import contractions, signals, states, step_matrices
from refssm.scan.linear import MARKS


def dense_scan(A, b):
    """x_k = A x_{k-1} + b_k along time, from rest: x_{-1} = 0.

    Signature ``(n,n),(l,n)->(l,n)``: `A` the discrete state matrix, `b` the inputs B̄ u_k, `l` time,
    `n` state; leading axes broadcast. Any of float32, float64, longdouble and their complex
    types; the result has ``np.result_type(A, b)``. Units: `A` has none, `b` and `x` share theirs.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [gu2022s4, §2.1].

    >>> import refssm
    >>> refssm.dense_scan([[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [0.0, 0.0]])
    array([[1., 2.],
           [2., 1.]])
    """
    b = np.broadcast_to(b, (*np.broadcast_shapes(A.shape[:-2], b.shape[:-2]), *b.shape[-2:]))
    x = np.empty_like(b, dtype=np.result_type(A, b))
    x[..., :1, :] = b[..., :1, :]
    for k in range(1, x.shape[-2]):
        x[..., k, :] = _applied(A, x[..., k - 1, :]) + b[..., k, :]
    return x


def _applied(A, x):
    """A x."""
    return (A @ x[..., None])[..., 0]


def _adjoint(dx, A):
    """g_k = dx_k + Aᴴ g_{k+1}, computed from the end."""
    g, back = dx.astype(np.result_type(dx, A)), A.conj().swapaxes(-1, -2)
    for k in range(g.shape[-2] - 2, -1, -1):
        g[..., k, :] = _applied(back, g[..., k + 1, :]) + dx[..., k, :]
    return g


def dense_scan_vjp(dx, A, b):
    """g_k = dx_k + Aᴴ g_{k+1};  db_k = g_k,  dA = Σ_{k>0} g_k x_{k-1}ᴴ.

    Returns `(dA, db)`, shaped like `A` and `b`.
    """
    g, x = _adjoint(dx, A), DENSE_SCAN.reference(A, b)
    dA = einsum("...ki,...kj->...ij", g[..., 1:, :], x[..., :-1, :].conj())
    return unbroadcast(dA, A), unbroadcast(g, b)


DENSE_SCAN = Operator(
    reference=dense_scan,
    signature="(n,n),(l,n)->(l,n)",
    inputs={"A": contractions, "b": signals},
    outputs=("x",),
    batch="b, b",
    traits=frozenset({"causal", "time-invariant", "state", "linear:b"}),
    citation="gu2022s4, §2.1",
    tags=("scan_SSM states", "dlsim states", "linear recurrence with a dense matrix"),
)
dense_scan = DENSE_SCAN.checked(dense_scan)
dense_scan_vjp = DENSE_SCAN.checked_vjp(dense_scan_vjp)


def dense_scan_from(A, b, x0):
    """x_k = A x_{k-1} + b_k along time, from the state x_{-1} = x0.

    Signature ``(n,n),(l,n),(n)->(l,n)``: as `dense_scan`, with the state `x0` before the first
    input, in the units of `b`. Types and errors are those of `dense_scan`. Source: [gu2022s4,
    §2.1].

    >>> import refssm
    >>> refssm.dense_scan_from([[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0]], [1.0, 2.0])
    array([[2., 1.]])
    """
    batch = np.broadcast_shapes(A.shape[:-2], b.shape[:-2], x0.shape[:-1])
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    x = np.empty_like(b, dtype=np.result_type(A, b, x0))
    state = x0
    for k in range(x.shape[-2]):
        x[..., k, :] = state = _applied(A, state) + b[..., k, :]
    return x


def dense_scan_from_vjp(dx, A, b, x0):
    """g_k = dx_k + Aᴴ g_{k+1};  db_k = g_k,  dA = Σ_k g_k x_{k-1}ᴴ,  dx0 = Aᴴ g_0.

    Returns `(dA, db, dx0)`, shaped like `A`, `b` and `x0`.
    """
    g = _adjoint(dx, A)
    start = np.broadcast_to(x0[..., None, :], g[..., :1, :].shape)
    before = np.concatenate([start, DENSE_SCAN_FROM.reference(A, b, x0)[..., :-1, :]], axis=-2)
    dA = einsum("...ki,...kj->...ij", g, before.conj())
    dx0 = einsum("...ji,...kj->...i", A.conj(), g[..., :1, :])
    return unbroadcast(dA, A), unbroadcast(g, b), unbroadcast(dx0, x0)


DENSE_SCAN_FROM = Operator(
    reference=dense_scan_from,
    signature="(n,n),(l,n),(n)->(l,n)",
    form="from",
    inputs={"A": contractions, "b": signals, "x0": states},
    outputs=("x",),
    batch="b, b, b",
    traits=frozenset({"causal", "state", "linear:b,x0"}),
    citation="gu2022s4, §2.1",
    tags=("linear recurrence with a dense matrix from x0",),
)
dense_scan_from = DENSE_SCAN_FROM.checked(dense_scan_from)
dense_scan_from_vjp = DENSE_SCAN_FROM.checked_vjp(dense_scan_from_vjp)


def dense_step(A, b, x):
    """x ← A x + b, one step of the scan.

    Signature ``(n,n),(n),(n)->(n)``: the matrix, the input and the state before; leading axes
    broadcast. Returns the state after. Units, types and errors are those of `dense_scan`. Source:
    [blelloch1990prefix, §1.4.1].

    >>> import refssm
    >>> refssm.dense_step([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0], [3.0, 4.0])
    array([5., 5.])
    """
    return _applied(A, x) + b


def dense_step_vjp(dx_next, A, b, x):
    """dA = dx' xᴴ,  db = dx',  dx = Aᴴ dx'.

    Returns `(dA, db, dx)`, shaped like `A`, `b` and `x`.
    """
    db = dx_next.astype(np.result_type(dx_next, A, b, x))
    dA = db[..., :, None] * x[..., None, :].conj()
    return unbroadcast_each((dA, db, _applied(A.conj().swapaxes(-1, -2), db)), (A, b, x))


DENSE_VARYING = Recurrence(
    name="dense_scan_varying",
    step=Pair(dense_step, dense_step_vjp),
    signature="(l,n,n),(l,n)->(l,n)",
    inputs={"A": step_matrices, "b": signals},
    step_inputs={"A": contractions},
    outputs=("x",),
    batch="b, b",
    state=State("x", "n", "b", states),
    marks=MARKS,
    linear=("b",),
    doc="""x_k = A_k x_{k-1} + b_k along time, from rest.

    Signature ``(l,n,n),(l,n)->(l,n)``: as `dense_scan`, with one matrix for each step. `x_0` is
    `b_0` and does not depend on `A_0`. Types, units and errors are those of `dense_scan`. Source:
    [blelloch1990prefix, §1.4.1].
    """,
    vjp_doc="""g_k = dx_k + A_{k+1}ᴴ g_{k+1};  db_k = g_k,  dA_k = g_k x_{k-1}ᴴ.""",
    examples={
        "plain": """
        >>> A = [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
        >>> refssm.dense_scan_varying(A, [[1.0, 2.0], [0.0, 0.0]])
        array([[1., 2.],
               [2., 1.]])
        """,
        "stateful": """
        >>> refssm.dense_scan_varying_from([[[0.0, 1.0], [1.0, 0.0]]], [[0.0, 0.0]], [1.0, 2.0])
        array([[2., 1.]])
        """,
        "packed": """
        >>> A, b = [[[2.0]], [[2.0]], [[2.0]]], [[1.0], [1.0], [1.0]]
        >>> refssm.dense_scan_varying_packed(A, b, [False, False, True]).ravel()
        array([1., 3., 1.])
        """,
    },
    citation="blelloch1990prefix, §1.4.1",
    citation_of_packed="blelloch1990prefix, §1.5",
    tags={
        "plain": (
            "associative_scan of matrices",
            "time-varying linear recurrence",
            "linear recurrence with a matrix for each step",
        ),
        "stateful": ("time-varying linear recurrence from a state",),
        "packed": ("time-varying linear recurrence of packed sequences",),
        "step": ("one step with a dense matrix",),
    },
)
(
    DENSE_SCAN_VARYING,
    DENSE_SCAN_VARYING_FROM,
    DENSE_SCAN_VARYING_PACKED,
    DENSE_STEP,
) = DENSE_VARYING.operators
(
    (dense_scan_varying, dense_scan_varying_vjp),
    (dense_scan_varying_from, dense_scan_varying_from_vjp),
    (dense_scan_varying_packed, dense_scan_varying_packed_vjp),
    (dense_step, dense_step_vjp),
) = DENSE_VARYING.public()
