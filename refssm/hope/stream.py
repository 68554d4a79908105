"""HOPE as a recurrence: exact, a state of n numbers, O(n) operations per step [yu2024hope].

    y = Σ_j h_j s_{j+1},    s_0 = u,    s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k},

ρ = (1 − dt)/(1 + dt): a delay line with all-passes as delays; the Markov parameters h weight its
outputs. The step size warps the circle: Σ_j h_j z'^{−(j+1)} is the transfer function, z' = (1 − ρ
z⁻¹)/(z⁻¹ − ρ). At dt = 1 the all-passes are plain delays, and the stream is a filter of n taps, one
step late.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.domains import signals, states, taps, warping_steps
from refssm.hope.allpass import cascade, turning


def hope_stream(h, dt, u):
    """y_k = Σ_{j<n} h_j s_{j+1,k},  s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k},  s_0 = u.

    Signature ``(n),(),(l)->(l)``: `h` the Markov parameters, `dt` > 0 the step size, ρ =
    (1−dt)/(1+dt), `u` the signal; `n` parameters, `l` time; leading axes broadcast. Any of float32,
    float64, longdouble and their complex types, `dt` real; the result has ``np.result_type(h, dt,
    u)``. Units: `dt` has none, `y` those of `h` times those of `u`. NaN in `h` or `dt` reaches
    every output, NaN in `u` the outputs from its time on.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_stream([3.0, 5.0], 1.0, [1.0, 0.0, 2.0, 0.0])  # taps, a step late
    array([0., 3., 5., 6.])
    """
    x0 = np.zeros_like(h, dtype=u.dtype)
    s, _ = cascade(dt, u, x0)
    return _read(h, s)


def _read(h, s):
    """Σ_j h_j s_{j+1}."""
    return (h[..., :, None] * s[..., 1:, :]).sum(-2)


def hope_stream_vjp(dy, h, dt, u):
    """dh_j = Σ_k s_{j+1,k}* dy_k,  du = Σ_j h_j* S_{j+1},  S the time-reversed cascade of dy.

    With A the all-pass, ∂A/∂dt = (1 − A²)/(2dt), so ∂y/∂dt = Σ_j (j + 1) h_j (s_j − s_{j+2})/(2dt).
    Returns `(dh, ddt, du)`, shaped like `h`, `dt` and `u`.
    """
    x0 = np.zeros_like(h, dtype=u.dtype)
    dh, slope, du, *_ = _pulled_back(dy, h, dt, u, x0)
    return unbroadcast_each((dh, slope / (2 * dt), du), (h, dt, u))


def _pulled_back(dy, h, dt, u, x0):
    """dh, 2dt·ddt, du, the last states of the reversed cascade, and the last n + 1 states."""
    n = h.shape[-1]
    beyond = np.zeros_like(x0, shape=(*x0.shape[:-1], 1))
    s, x = cascade(dt, u, np.concatenate([x0, beyond], axis=-1))
    dh = (s[..., 1 : n + 1, :].conj() * dy[..., None, :]).sum(-1)
    j = np.arange(1, n + 1, dtype=np.finfo(s.dtype).dtype)
    slopes = (j * h)[..., :, None] * (s[..., :n, :] - s[..., 2:, :])
    slope = (dy.conj() * slopes.sum(-2)).sum(-1)
    S, X = cascade(dt, dy[..., ::-1], np.zeros_like(x0, dtype=dy.dtype))
    return dh, slope, _read(h.conj(), S)[..., ::-1], X[..., -1], x[..., -1]


HOPE_STREAM = Operator(
    reference=hope_stream,
    signature="(n),(),(l)->(l)",
    inputs={"h": taps, "dt": warping_steps, "u": signals},
    batch="d, d, b d",
    traits=frozenset({"causal", "time-invariant", "state", "linear:h", "linear:u"}),
    citation="yu2024hope",
    tags=("HOPE recurrence", "all-pass filter cascade"),
)
hope_stream = HOPE_STREAM.checked(hope_stream)
hope_stream_vjp = HOPE_STREAM.checked_vjp(hope_stream_vjp)


def hope_stream_stateful(h, dt, u, x0):
    """y_k = Σ_j h_j s_{j+1,k} from the states x_{j,−1} = x0_j; and the last states.

    s_{j+1,k} = c x_{j,k−1} − ρ s_{j,k},  x_{j,k} = ρ x_{j,k−1} + c s_{j,k},  s_0 = u.

    Signature ``(n),(),(l),(n)->(l),(n)``: as `hope_stream`, c = 2√dt/(1 + dt). From rest, the
    states are the coefficients of the past in orthonormal functions, so ‖x‖ ≤ ‖u‖; at dt = 1 they
    are the last n inputs, the newest first. Units: `x` those of `u`. The states do not depend on
    `h`. Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_stream_stateful([3.0, 5.0], 1.0, [2.0], [7.0, 1.0])
    (array([26.]), array([2., 7.]))
    """
    s, x = cascade(dt, u, x0)
    y = _read(h, s)
    return y, with_batch(x[..., -1], 1, y.shape[:-1])


def hope_stream_stateful_vjp(dy, dx, h, dt, u, x0):
    """As in `hope_stream_vjp`, and dx0_i = Σ_j h_{i+j}* X_j + Z_{n−1−i}: the Hankel matrix of h.

    X are the last states of the reversed cascade with input dy; Z its last states without input,
    started from dx in reverse order; its output is added to du. For the states, with T of
    `turning`, ∂x/∂dt = T x/(2dt), minus the response to T x0/(2dt). Returns `(dh, ddt, du, dx0)`,
    shaped like `h`, `dt`, `u` and `x0`.
    """
    n = h.shape[-1]
    dh, slope, du, X, x = _pulled_back(dy, h, dt, u, x0)
    free, Z = cascade(dt, np.zeros_like(dy), dx[..., ::-1])
    du = du + free[..., n, ::-1]
    dx0 = hankel_product(h.conj(), X) + Z[..., ::-1, -1]
    slope = slope + (dx.conj() * turning(x)[..., :n]).sum(-1) - (dx0.conj() * turning(x0)).sum(-1)
    return unbroadcast_each((dh, slope / (2 * dt), du, dx0), (h, dt, u, x0))


def hankel_product(h, x):
    """Σ_j h_{i+j} x_j, h = 0 beyond its end."""
    i = np.arange(h.shape[-1])
    extended = np.concatenate([h, np.zeros_like(h)], axis=-1)
    return (extended[..., i[:, None] + i] * x[..., None, :]).sum(-1)


HOPE_STREAM_STATEFUL = Operator(
    reference=hope_stream_stateful,
    signature="(n),(),(l),(n)->(l),(n)",
    form="stateful",
    inputs={"h": taps, "dt": warping_steps, "u": signals, "x0": states},
    outputs=("y", "x"),
    batch="d, d, b d, b d",
    traits=frozenset({"causal", "state", "linear:u,x0", "linear:h->y"}),
    citation="yu2024hope",
    tags=("HOPE recurrence with the last state",),
)
hope_stream_stateful = HOPE_STREAM_STATEFUL.checked(hope_stream_stateful)
hope_stream_stateful_vjp = HOPE_STREAM_STATEFUL.checked_vjp(hope_stream_stateful_vjp)


def hope_step(h, dt, u, x):
    """s ← u, and for j = 0 … n−1 (x_j, s) ← (ρ x_j + c s, c x_j − ρ s), y += h_j s: one step.

    Signature ``(n),(),(),(n)->(),(n)``: as one step of `hope_stream_stateful`, for generation.
    Source: [yu2024hope].

    >>> import refssm
    >>> refssm.hope_step([3.0, 5.0], 1.0, 2.0, [7.0, 1.0])
    (array(26.), array([2., 7.]))
    """
    y, x = HOPE_STREAM_STATEFUL.reference(h, dt, u[..., None], x)
    return y[..., 0], x


def hope_step_vjp(dy, dx_next, h, dt, u, x):
    """As `hope_stream_stateful_vjp`, for one step.

    Returns `(dh, ddt, du, dx)`, shaped like `h`, `dt`, `u` and `x`.
    """
    pull = HOPE_STREAM_STATEFUL.bare_vjp
    dh, ddt, du, dx = pull(dy[..., None], dx_next, h, dt, u[..., None], x)
    return dh, ddt, du[..., 0], dx


HOPE_STEP = Operator(
    reference=hope_step,
    signature="(n),(),(),(n)->(),(n)",
    form="step",
    inputs={"h": taps, "dt": warping_steps, "u": signals, "x": states},
    outputs=("y", "x_next"),
    batch="d, d, b d, b d",
    traits=frozenset({"linear:u,x", "linear:h->y"}),
    citation="yu2024hope",
    tags=("HOPE recurrence one step", "HOPE decoding"),
)
hope_step = HOPE_STEP.checked(hope_step)
hope_step_vjp = HOPE_STEP.checked_vjp(hope_step_vjp)
