"""The real-gated linear recurrent unit of Griffin and RecurrentGemma [de2024griffin, §2.4].

    log a_t = −8 softplus(a_param) r_t,    x_t = a_t x_{t-1} + √(1 − a_t²) i_t u_t

r and i are gates between 0 and 1, after their logistic functions. The root is √(−expm1(2 log a_t)):
near a = 1 the difference 1 − a² has no digits. All steps have the root, a sequence's first one too.
First one step; the other forms follow from it. Last the same where a sequence begins with i u.
"""

import numpy as np

from refssm._declaration.recurrence import Pair, Recurrence, State
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid, softplus
from refssm.domains import input_gates, rate_logits, real_signals, real_states, recurrence_gates
from refssm.scan.linear import LINEAR, MARKS


def log_decay(r, a_param):
    """log a = −8 softplus(a_param) r."""
    return -8 * softplus(a_param) * r


def _root(log_a):
    """√(1 − a²)."""
    return np.sqrt(-np.expm1(2 * log_a))


def rg_lru_step(u, r, i, a_param, x):
    """x ← a x + √(1 − a²) i u,  log a = −8 softplus(a_param) r: one step.

    Signature ``(n),(n),(n),(n),(n)->(n)``: as one step of `rg_lru_from`; types, units and errors
    are the same. Returns the state after. Source: [de2024griffin, §2.4].

    >>> import refssm
    >>> x = refssm.rg_lru_step([2.0], [1.0], [0.5], [100.0], [4.0])
    >>> print(x[0])  # a = e^-800
    1.0
    """
    log_a = log_decay(r, a_param)
    return np.exp(log_a) * x + _root(log_a) * (i * u)


def rg_lru_step_vjp(dx_next, u, r, i, a_param, x):
    """du = √(1 − a²) i dx',  di = √(1 − a²) u dx',  dx = a dx',
    dlog_a = (a x − a²/√(1 − a²) i u) dx',  dr = −8 softplus(a_param) dlog_a,
    da_param = −8 r σ(a_param) dlog_a.

    Returns `(du, dr, di, da_param, dx)`, shaped like the arguments.
    """
    a, root, slope = decay_and_root(log_decay(r, a_param))
    da, db = x * dx_next, dx_next.astype(np.result_type(dx_next, u, r, i, a_param, x))
    gradients = _of_gates(da, db, u, r, i, a_param, (a, root, slope))
    return unbroadcast_each((*gradients, a * db), (u, r, i, a_param, x))


def decay_and_root(log_a, whole=None):
    """a, √(1 − a²) and its derivative by log a; for `whole` steps 1 in place of the root."""
    a, root = np.exp(log_a), _root(log_a)
    slope = -a * a / root
    if whole is None:
        return a, root, slope
    whole = whole[..., None]
    return a, np.where(whole, 1, root), np.where(whole, 0, slope)


def _of_gates(da, db, u, r, i, a_param, parts):
    """The cotangents of (u, r, i, a_param) from those of decays and inputs, at full shape."""
    a, root, slope = parts
    through = -8 * (a * da + slope * (i * u) * db)
    return root * i * db, softplus(a_param) * through, root * u * db, r * sigmoid(a_param) * through


def _run(arguments, x0, resets, whole=None):
    """All states."""
    u, r, i, a_param = arguments
    a, root, _ = decay_and_root(log_decay(r, a_param[..., None, :]), whole)
    return LINEAR.run((a, root * (i * u)), x0, resets)


def _back(cotangents, arguments, x0, resets, whole=None):
    """Gradients for the arguments and x0."""
    u, r, i, a_param = arguments
    over_time = a_param[..., None, :]
    parts = a, root, _ = decay_and_root(log_decay(r, over_time), whole)
    given = np.broadcast_arrays(a, root * (i * u), cotangents[0])
    da, db, *dx0 = LINEAR.back(given[2:], given[:2], x0, resets)
    du, dr, di, dparam = _of_gates(da, db, u, r, i, over_time, parts)
    return *unbroadcast_each((du, dr, di, dparam.sum(-2)), arguments), *dx0


REAL_GATED = Recurrence(
    name="rg_lru",
    step=Pair(rg_lru_step, rg_lru_step_vjp),
    run=_run,
    back=_back,
    signature="(l,n),(l,n),(l,n),(n)->(l,n)",
    inputs={
        "u": real_signals,
        "r": recurrence_gates,
        "i": input_gates,
        "a_param": rate_logits,
    },
    outputs=("x",),
    batch="b, b, b, ",
    state=State("x", "n", "b", real_states),
    marks=MARKS,
    linear=("u",),
    doc="""x_t = a_t x_{t-1} + √(1 − a_t²) i_t u_t,  log a_t = −8 softplus(a_param) r_t, from rest.

    Signature ``(l,n),(l,n),(l,n),(n)->(l,n)``: `u` the input, `r` and `i` the gates of recurrence
    and input after their logistic functions, 0 to 1, `a_param` the rate of each state before the
    softplus; `l` time, `n` state; leading axes broadcast, `a_param` has none of the batch. All are
    real: float32, float64 or longdouble; the result has their ``np.result_type``. Units: `x` that
    of `u`, the others none. The root is there at every step: code that has 1 in its place where a
    sequence begins is `rg_lru_unscaled_start`. At r = 0 the derivative by r is infinite.

    Raises ValueError if sizes disagree, TypeError for other types. NaN and infinity propagate
    without warnings. Source: [de2024griffin, §2.4].
    """,
    vjp_doc="""g_t = dx_t + a_{t+1} g_{t+1};  du_t = √(1 − a_t²) i_t g_t,
    di_t = √(1 − a_t²) u_t g_t,
    dlog_a_t = (a_t x_{t-1} − a_t²/√(1 − a_t²) i_t u_t) g_t,  dr_t = −8 softplus(a_param) dlog_a_t,
    da_param = −8 σ(a_param) Σ_t r_t dlog_a_t.""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.rg_lru([[1.0], [2.0]], one, one, [100.0]).ravel()  # a = e^-800
        array([1., 2.])
        """,
        "stateful": """
        >>> x = refssm.rg_lru_from([[0.0], [0.0]], [[1.0], [1.0]], [[1.0], [1.0]], [0.0], [256.0])
        >>> x.ravel()  # softplus(0) = log 2: a = 2^-8
        array([1.        , 0.00390625])
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> refssm.rg_lru_packed([[1.0], [2.0]], one, one, [100.0], [False, True]).ravel()
        array([1., 2.])
        """,
        "packed_stateful": """
        >>> one, zero = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.rg_lru_packed_from(zero, one, one, [0.0], [[256.0], [512.0]], [1, 2]).ravel()
        array([1., 2.])
        """,
    },
    citation="de2024griffin, §2.4",
    citation_of_packed="de2024griffin, §2.4",
    tags={
        "plain": ("RG-LRU", "Griffin", "real-gated linear recurrent unit"),
        "stateful": ("RGLRU with a cache", "RG-LRU from a state"),
        "packed": ("RG-LRU packed with the root at all steps",),
        "packed_stateful": ("RG-LRU varlen initial states",),
        "step": ("RG-LRU decoding", "Griffin one step"),
    },
)
(
    RG_LRU,
    RG_LRU_FROM,
    RG_LRU_PACKED,
    RG_LRU_PACKED_FROM,
    RG_LRU_STEP,
) = REAL_GATED.operators
(
    (rg_lru, rg_lru_vjp),
    (rg_lru_from, rg_lru_from_vjp),
    (rg_lru_packed, rg_lru_packed_vjp),
    (rg_lru_packed_from, rg_lru_packed_from_vjp),
    (rg_lru_step, rg_lru_step_vjp),
) = REAL_GATED.public()


def first_steps(l: int, x0, resets):
    """True where a sequence begins: from rest, and at resets."""
    first = np.arange(l) == 0 if x0 is None else np.zeros(l, bool)
    return first if resets is None else first | (resets != 0)


def _run_unscaled(arguments, x0, resets):
    """All states."""
    return _run(arguments, x0, resets, first_steps(arguments[0].shape[-2], x0, resets))


def _back_unscaled(cotangents, arguments, x0, resets):
    """Gradients for the arguments and x0."""
    whole = first_steps(arguments[0].shape[-2], x0, resets)
    return _back(cotangents, arguments, x0, resets, whole)


UNSCALED_START = Recurrence(
    name="rg_lru_unscaled_start",
    run=_run_unscaled,
    back=_back_unscaled,
    signature=REAL_GATED.signature,
    inputs=REAL_GATED.inputs,
    outputs=REAL_GATED.outputs,
    batch=REAL_GATED.batch,
    state=REAL_GATED.state,
    marks=MARKS,
    linear=REAL_GATED.linear,
    doc="""As `rg_lru`, but x_0 = i_0 u_0: no root where a sequence begins, from rest.

    Signature ``(l,n),(l,n),(l,n),(n)->(l,n)``: arguments, types, units and errors are those of
    `rg_lru`; its first step has 1 in place of √(1 − a²), and neither `r` nor `a_param` enters it.
    Public code of RecurrentGemma is so at position 0; from a state it is `rg_lru_from`. Source:
    [botev2024recurrentgemma].
    """,
    vjp_doc="""As `rg_lru_vjp`; where a sequence begins, du = i g, di = u g and dlog_a = 0.""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0]]
        >>> x = refssm.rg_lru_unscaled_start([[256.0], [0.0]], one, one, [0.0])
        >>> print(x.ravel().round(9))  # a = 2^-8
        [256.   1.]
        """,
        "packed": """
        >>> one = [[1.0], [1.0]]
        >>> x = refssm.rg_lru_unscaled_start_packed([[2.0], [3.0]], one, one, [0.0], [False, True])
        >>> x.ravel().tolist()
        [2.0, 3.0]
        """,
    },
    citation="botev2024recurrentgemma",
    citation_of_packed="botev2024recurrentgemma",
    tags={
        "plain": ("RecurrentGemmaRglru", "RecurrentGemma recurrence", "RGLRU segment_pos"),
        "packed": ("RecurrentGemmaRglru position_ids", "RecurrentGemma packed documents"),
    },
)
RG_LRU_UNSCALED_START, RG_LRU_UNSCALED_START_PACKED = UNSCALED_START.operators
(
    (rg_lru_unscaled_start, rg_lru_unscaled_start_vjp),
    (rg_lru_unscaled_start_packed, rg_lru_unscaled_start_packed_vjp),
) = UNSCALED_START.public()
