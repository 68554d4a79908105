"""Honest HOPE streams: difference equations, filters, matrices, a kernel, a circle of nodes."""

# pyright: reportCallIssue=false, reportArgumentType=false
# (scipy.fft's functions are dispatched)

import numpy as np
from scipy import fft, signal

from honest import Honest
from refssm.convolution import CAUSAL_CONVOLUTION_DIRECT
from refssm.hope import HOPE_STEP, HOPE_STREAM, HOPE_STREAM_STATEFUL


def _rotation(dt):
    """ρ and c by half an angle: tan φ/2 = √dt."""
    rho = (1 - dt) / (1 + dt)
    return rho, 2 / (1 / np.sqrt(dt) + np.sqrt(dt))


def difference_equation(h, dt, u):
    """s' = ρ s'₋ + s₋ − ρ s, one stage after another."""
    rho = (1 - dt) / (1 + dt)
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1])
    s = np.broadcast_to(u, (*batch, u.shape[-1])).astype(np.result_type(u, dt))
    y = np.zeros(s.shape, np.result_type(h, s))
    for j in range(h.shape[-1]):
        delayed, last, into = np.empty_like(s), 0, 0
        for k in range(s.shape[-1]):
            delayed[..., k] = last = rho * last + into - rho * s[..., k]
            into = s[..., k]
        s = delayed
        y = y + h[..., j, None] * s
    return y


def filters(h, dt, u):
    """SciPy's lfilter, one stage after another."""
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1])
    h, u = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (h, u))
    y = np.zeros(u.shape, np.result_type(h, dt, u))
    for i in np.ndindex(*batch):
        rho = (1 - np.broadcast_to(dt, batch)[i]) / (1 + np.broadcast_to(dt, batch)[i])
        s = u[i].astype(np.result_type(u, dt))
        one = rho.dtype.type(1)
        for h_j in h[i]:
            s = signal.lfilter(np.stack([-rho, one]), np.stack([one, -rho]), s)
            y[i] += h_j * s
    return y


def one_state_more(h, dt, u):
    """Stores the signals of the last step instead of the states: n + 1 numbers."""
    rho = ((1 - dt) / (1 + dt))[..., None]
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1])
    y = np.zeros((*batch, u.shape[-1]), np.result_type(h, dt, u))
    before = np.zeros((*batch, h.shape[-1] + 1), np.result_type(u, dt))
    for k in range(u.shape[-1]):
        now = np.empty_like(before)
        now[..., 0] = u[..., k]
        for j in range(h.shape[-1]):
            feed = rho[..., 0] * (before[..., j + 1] - now[..., j])
            now[..., j + 1] = before[..., j] + feed
        y[..., k] = (h * now[..., 1:]).sum(-1)
        before = now
    return y


def matrices(rho, c, n):
    """Lower triangular matrices: Ā, B̄, and the maps from states and input to the signals."""
    i = np.arange(n)
    lag = i[:, None] - i
    powers = np.where(lag > 0, (-rho[..., None]) ** np.maximum(lag - 1, 0), 0)
    A = c[..., None] ** 2 * powers + rho[..., None] * np.eye(n, dtype=rho.dtype)
    rows = c[..., None] * np.where(lag >= 0, (-rho[..., None]) ** np.maximum(lag, 0), 0)
    return A, c * (-rho) ** i, rows, (-rho) ** (i + 1)


def _lower(M, x):
    """M x without products above the diagonal, where 0 · NaN would be NaN."""
    i = np.arange(x.shape[-1])
    return np.where(i[:, None] >= i, M * x[..., None, :], 0).sum(-1)


def dense(h, dt, u, x0):
    """x ← Ā x + B̄ u with the matrices written out."""
    rho, c = _rotation(dt[..., None])
    A, B, rows, direct = matrices(rho, c, h.shape[-1])
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1], x0.shape[:-1])
    x = np.broadcast_to(x0, (*batch, x0.shape[-1])).astype(np.result_type(u, dt, x0))
    y = np.zeros((*batch, u.shape[-1]), np.result_type(h, x))
    for k in range(u.shape[-1]):
        y[..., k] = (h * (_lower(rows, x) + direct * u[..., k, None])).sum(-1)
        x = _lower(A, x) + B * u[..., k, None]
    return y, x


def step_by_step(h, dt, u, x0):
    """Rotations: a loop over stages inside a loop over time."""
    rho, c = _rotation(dt)
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1], x0.shape[:-1])
    x = np.broadcast_to(x0, (*batch, x0.shape[-1])).astype(np.result_type(u, dt, x0))
    y = np.zeros((*batch, u.shape[-1]), np.result_type(h, x))
    for k in range(u.shape[-1]):
        s = u[..., k]
        for j in range(h.shape[-1]):
            x[..., j], s = rho * x[..., j] + c * s, c * x[..., j] - rho * s
            y[..., k] += h[..., j] * s
    return y, x


def normalised_differently(h, dt, u, x0):
    """Internal states larger by a factor c: s' = z − ρ s, z ← s + ρ s'; c only at both ends."""
    rho, c = _rotation(dt)
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape, u.shape[:-1], x0.shape[:-1])
    z = (c[..., None] * np.broadcast_to(x0, (*batch, x0.shape[-1]))).astype(
        np.result_type(u, dt, x0)
    )
    y = np.zeros((*batch, u.shape[-1]), np.result_type(h, z))
    for k in range(u.shape[-1]):
        s = u[..., k]
        for j in range(h.shape[-1]):
            after = z[..., j] - rho * s
            z[..., j] = s + rho * after
            y[..., k] += h[..., j] * after
            s = after
    return y, z / c[..., None]


def by_kernel(h, dt, u):
    """The reference's impulse response, then a convolution."""
    impulse = (np.arange(u.shape[-1]) == 0).astype(dt.dtype)
    return CAUSAL_CONVOLUTION_DIRECT.reference(u, HOPE_STREAM.reference(h, dt, impulse))


def around_a_circle(h, dt, u):
    """The impulse response from 8l nodes on a circle on which aliases decay, then a convolution."""
    l = u.shape[-1]
    m, wide = 8 * max(l, 1), np.longdouble
    radius = np.finfo(wide).eps ** (-1 / wide(m))
    angle = 8 * np.arctan(wide(1)) * np.arange(m) / m
    inverse = (np.cos(angle) - 1j * np.sin(angle)) / radius  # z⁻¹ on |z| = R
    rho = ((1 - dt.astype(wide)) / (1 + dt.astype(wide)))[..., None]
    allpass = (inverse - rho) / (1 - rho * inverse)
    G = np.zeros_like(allpass)
    for j in reversed(range(h.shape[-1])):
        G = (G + h[..., j, None]) * allpass
    spread = fft.ifft(G)[..., :l] * radius ** np.arange(l)
    kernel = (spread if np.iscomplexobj(h) else spread.real).astype(np.result_type(h, dt))
    return CAUSAL_CONVOLUTION_DIRECT.reference(u, kernel)


def off_one(x):
    """The case with dt ≠ 1, as dt = 1 gives integers, which must be exact."""
    return {**x, "dt": np.where(x["dt"] == 1, x["dt"] / 2, x["dt"])}


def taps_only(x):
    """The case with dt = 1."""
    return {**x, "dt": np.ones_like(x["dt"])}


def moderate(x):
    """The case with dt from 0.05 to 20: outside c is small and scaled states cancel."""
    return {**x, "dt": np.clip(x["dt"], x["dt"].dtype.type(0.05), x["dt"].dtype.type(20))}


def filter_of_taps(h, dt, u):
    """For dt = 1: a filter of n taps, one step late; padded with zeros, as 0 · NaN must be NaN."""
    del dt
    around = np.zeros_like(h, shape=(*h.shape[:-1], u.shape[-1] + 1))
    taps = np.concatenate([0 * h[..., :1], h, around], axis=-1)[..., : u.shape[-1]]
    return CAUSAL_CONVOLUTION_DIRECT.reference(u, taps)


def from_rest(stateful):
    """The outputs of a stateful form from a zero state."""
    return lambda h, dt, u: stateful(h, dt, u, np.zeros_like(h, dtype=u.dtype))[0]


def one_step(stateful):
    """A stateful form, applied to one step."""

    def step(h, dt, u, x):
        y, x = stateful(h, dt, u[..., None], x)
        return y[..., 0], x

    return step


PLAIN = (difference_equation, filters, one_state_more, by_kernel)
STATEFUL = {dense: None, step_by_step: None, normalised_differently: moderate}
FROM = HOPE_STREAM_STATEFUL.name
IMPLEMENTATIONS = [
    *(Honest(HOPE_STREAM.name, form.__name__, form) for form in PLAIN),
    *(  # as its stateful form is, for `split` calls both
        Honest(HOPE_STREAM.name, form.__name__, from_rest(form), only=only)
        for form, only in STATEFUL.items()
    ),
    Honest(HOPE_STREAM.name, "around_a_circle", around_a_circle, only=off_one),
    Honest(HOPE_STREAM.name, "filter_of_taps", filter_of_taps, only=taps_only),
    *(Honest(FROM, form.__name__, form, only=only) for form, only in STATEFUL.items()),
    *(
        Honest(HOPE_STEP.name, form.__name__, one_step(form), only=only)
        for form, only in STATEFUL.items()
    ),
]
