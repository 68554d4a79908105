"""The minimal gated recurrent unit [feng2024were, App. B.3.1].

    x_t = (1 − z_t) x_{t-1} + z_t g(h_t),    z_t = σ(k_t),    g(h) = h + ½ if h ≥ 0, else σ(h)

1 − z is σ(−k), so that it keeps its digits where z is near 1: log(1 − z) = −softplus(k). g is
positive, so states from rest are positive and have logarithms, which parallel programs use. First
one step; the other forms follow from it.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid, sigmoid_vjp
from refssm.domains import candidates, real_states, update_logits
from refssm.scan.linear import LINEAR, MARKS


def positive(h):
    """g(h) = h + ½ if h ≥ 0, else σ(h)."""
    return np.where(h >= 0, h + 0.5, sigmoid(h))


def positive_vjp(dg, h):
    """dg if h ≥ 0, else dg σ(h) σ(−h)."""
    return np.where(h >= 0, dg, sigmoid_vjp(dg, h))


def min_gru_step(k, h, x):
    """x ← (1 − z) x + z g(h),  z = σ(k): one step.

    Signature ``(n),(n),(n)->(n)``: as one step of `min_gru_from`; types, units and errors are the
    same. Returns the state after. Source: [feng2024were, App. B.3.1].

    >>> import refssm
    >>> refssm.min_gru_step([0.0], [1.5], [4.0])
    array([3.])
    """
    return sigmoid(-k) * x + sigmoid(k) * positive(h)


def min_gru_step_vjp(dx_next, k, h, x):
    """dk = z (1 − z) (g(h) − x) dx',  dh = z g'(h) dx',  dx = (1 − z) dx'.

    Returns `(dk, dh, dx)`, shaped like the arguments.
    """
    da, db = x * dx_next, dx_next.astype(np.result_type(dx_next, k, h, x))
    gradients = *_of_gates(da, db, k, h), sigmoid(-k) * db
    return unbroadcast_each(gradients, (k, h, x))


def _of_gates(da, db, k, h):
    """The cotangents of k and h from those of 1 − z and z g(h), at full shape."""
    z = sigmoid(k)
    return z * sigmoid(-k) * (positive(h) * db - da), positive_vjp(z * db, h)


def _run(arguments, x0, resets):
    """All states."""
    k, h = arguments
    return LINEAR.run((sigmoid(-k), sigmoid(k) * positive(h)), x0, resets)


def _back(cotangents, arguments, x0, resets):
    """Gradients for the arguments and x0."""
    k, h = arguments
    given = np.broadcast_arrays(sigmoid(-k), sigmoid(k) * positive(h), cotangents[0])
    da, db, *dx0 = LINEAR.back(given[2:], given[:2], x0, resets)
    return *unbroadcast_each(_of_gates(da, db, k, h), arguments), *dx0


MINIMAL_GATED = Recurrence(
    name="min_gru",
    step=Pair(min_gru_step, min_gru_step_vjp),
    run=_run,
    back=_back,
    signature="(l,n),(l,n)->(l,n)",
    inputs={"k": update_logits, "h": candidates},
    outputs=("x",),
    batch="b, b",
    state=State("x", "n", "b", real_states),
    marks=MARKS,
    linear=(),
    doc="""x_t = (1 − z_t) x_{t-1} + z_t g(h_t),  z_t = σ(k_t), from rest.

    Signature ``(l,n),(l,n)->(l,n)``: `k` the update gate before its logistic function, `h` the
    candidate before g(h) = h + ½ if h ≥ 0, else σ(h); `l` time, `n` state; leading axes broadcast.
    Both are real: float32, float64 or longdouble; the result has their ``np.result_type``. They
    have no units. At h = 0, where g has a corner, its derivative is 1.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [feng2024were, App. B.3.1].
    """,
    vjp_doc="""e_t = dx_t + (1 − z_{t+1}) e_{t+1};  dk_t = z_t (1 − z_t) (g(h_t) − x_{t-1}) e_t,
    dh_t = z_t g'(h_t) e_t.""",
    examples={
        "plain": """
        >>> refssm.min_gru([[0.0], [0.0]], [[1.5], [0.0]]).ravel()
        array([1.  , 0.75])
        """,
        "stateful": """
        >>> refssm.min_gru_from([[0.0], [0.0]], [[1.5], [0.0]], [4.0]).ravel()
        array([3.  , 1.75])
        """,
        "packed": """
        >>> refssm.min_gru_packed([[0.0], [0.0]], [[1.5], [0.0]], [False, True]).ravel()
        array([1.  , 0.25])
        """,
        "packed_stateful": """
        >>> refssm.min_gru_packed_from(
        ...     [[0.0], [0.0]], [[1.5], [0.0]], [[4.0], [1.0]], [1, 2]).ravel()
        array([3.  , 0.75])
        """,
    },
    citation="feng2024were, App. B.3.1",
    citation_of_packed="feng2024were, App. B.3.1",
    tags={
        "plain": ("minGRU", "minGRU log-space", "were RNNs all we needed"),
        "stateful": ("minGRU prev_hidden", "minGRU from a state"),
        "packed": ("minGRU packed", "minGRU varlen"),
        "packed_stateful": ("minGRU varlen initial states",),
        "step": ("minGRU decoding", "minGRU sequential mode"),
    },
)
(
    MIN_GRU,
    MIN_GRU_FROM,
    MIN_GRU_PACKED,
    MIN_GRU_PACKED_FROM,
    MIN_GRU_STEP,
) = MINIMAL_GATED.operators
(
    (min_gru, min_gru_vjp),
    (min_gru_from, min_gru_from_vjp),
    (min_gru_packed, min_gru_packed_vjp),
    (min_gru_packed_from, min_gru_packed_from_vjp),
    (min_gru_step, min_gru_step_vjp),
) = MINIMAL_GATED.public()
