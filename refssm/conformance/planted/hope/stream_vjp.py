"""Planted bugs in the VJPs of HOPE streams."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.arithmetic import float16
from refssm.conformance.planted.planting import Planting, instead
from refssm.hope import HOPE_STEP, HOPE_STREAM
from refssm.hope.allpass import cascade, turning


def pulled(
    dy, dx, h, dt, u, x0, *,
    conj=np.conj, weights=None, after=-1.0, factor=None, beyond=True, turned=(1.0, 1.0),
    toeplitz=False, flipped=slice(None, None, -1), forward=False,
):  # fmt: skip
    """The gradients of (h, dt, u, x0); each keyword replaces a part by a wrong one."""
    n = h.shape[-1]
    more = np.zeros_like(x0, shape=(*x0.shape[:-1], 1))
    s, x = cascade(dt, u, np.concatenate([x0, more], axis=-1))
    dh = (conj(s[..., 1 : n + 1, :]) * dy[..., None, :]).sum(-1)
    j = np.arange(n) + 1.0 if weights is None else weights(n)
    last = s[..., 2:, :] if beyond else s[..., 2:, :] * (np.arange(n) < n - 1)[:, None]
    slope = (conj(dy) * ((j * h)[..., None] * (s[..., :n, :] + after * last)).sum(-2)).sum(-1)
    back = slice(None) if forward else slice(None, None, -1)
    S, X = cascade(dt, dy[..., back], np.zeros_like(x0, dtype=dy.dtype))
    free, Z = cascade(dt, np.zeros_like(dy), dx[..., flipped])
    i = np.arange(n)
    more_h = np.concatenate([conj(h), 0 * h], axis=-1)
    lag = np.abs(i[:, None] - i) if toeplitz else i[:, None] + i
    dx0 = (more_h[..., lag] * X[..., None, :, -1]).sum(-1) + Z[..., flipped, -1]
    du = (conj(h)[..., None] * S[..., 1:, :]).sum(-2)[..., back] + free[..., n, back]
    ends = (conj(dx) * turning(x[..., -1])[..., :n]).sum(-1)
    slope = slope + turned[0] * ends - turned[1] * (conj(dx0) * turning(x0)).sum(-1)
    return dh, slope * (1 / (2 * dt) if factor is None else factor(dt)), du, dx0


def _with(**parts):
    return lambda *args: pulled(*args, **parts)


def _first_alone(dy, dx, h, dt, u, x0):
    dy_1, dx_1, u_1, x0_1 = (a[:1] if a.ndim > h.ndim else a for a in (dy, dx, u, x0))
    return pulled(dy_1, dx_1, h, dt, u_1, x0_1)[0], *pulled(dy, dx, h, dt, u, x0)[1:]


GRADIENTS = [
    ("dt_doubled", "1/dt for 1/(2dt)", _with(factor=lambda dt: 1 / dt)),
    ("dt_logarithmic", "the gradient of log dt", _with(factor=lambda dt: 0.5 + 0 * dt)),
    ("dt_of_pole", "the gradient of ρ", _with(factor=lambda dt: -((1 + dt) ** 2) / (4 * dt))),
    ("dt_plus", "1 + A² for 1 − A²", _with(after=1.0)),
    ("dt_one_stage", "1 for j + 1: one stage's slope", _with(weights=lambda n: np.ones(n))),
    ("dt_index", "j for j + 1", _with(weights=lambda n: np.arange(n) + 0.0)),
    ("dt_last_stage", "s_{n+1} taken as 0", _with(beyond=False)),
    ("parameters_of_first_batch", "dh of the first sequence only", _first_alone),
    ("dt_missing", "ddt = 0", {"dt": lambda g: 0 * g}),
    ("dt_sign", "ddt with the other sign", {"dt": np.negative}),
    ("parameters_reversed", "dh backwards", {"h": lambda g: g[..., ::-1]}),
    ("parameters_late", "dh_j of s_j",
     {"h": lambda g: np.concatenate([0 * g[..., :1], g[..., :-1]], -1)}),
    ("signal_sign", "du with the other sign", {"u": np.negative}),
    ("float16", "the cotangent in float16", {"dy": float16}),
]  # fmt: skip
OF_STATES = [
    ("start_missing", "dx0 = 0", lambda *args: (*pulled(*args)[:3], 0 * pulled(*args)[3])),
    ("start_toeplitz", "h_{|i−j|} for the Hankel matrix", _with(toeplitz=True)),
    ("state_dropped", "the last states' cotangent dropped",
     lambda dy, dx, *args: pulled(dy, 0 * dx, *args)),
    ("state_not_reversed", "the last states' cotangent with the first stage first",
     _with(flipped=slice(None))),
    ("dt_without_start", "ddt as if x0 depended on dt", _with(turned=(1.0, 0.0))),
    ("dt_without_end", "ddt as if the last states did not", _with(turned=(0.0, 1.0))),
    ("dt_turned_back", "the last states' slope with the other sign", _with(turned=(-1.0, 1.0))),
]  # fmt: skip


def _as_called(op):
    """Turn a function of (dy, dx, h, dt, u, x0) into a VJP with the operator's arguments."""

    def adapt(pull):
        def gradients(dy, dx, h, dt, u, x0):
            return unbroadcast_each(pull(dy, dx, h, dt, u, x0), (h, dt, u, x0))

        def plain(right, dy, h, dt, u):
            x0 = np.zeros((*dy.shape[:-1], h.shape[-1]), u.dtype)
            return gradients(dy, 0 * x0, h, dt, u, x0)[:3]

        def step(right, dy, dx, h, dt, u, x):
            dh, ddt, du, dx = gradients(dy[..., None], dx, h, dt, u[..., None], x)
            return dh, ddt, du[..., 0], dx

        return {HOPE_STREAM: plain, HOPE_STEP: step}.get(op, instead(gradients))

    return adapt


def wrong_gradients(op) -> list:
    """The wrong VJPs of a stream, of its form from a state, or of a step."""
    p = Planting(op, "float32", adapt=_as_called(op))
    p.plant(*GRADIENTS, *(OF_STATES if op is not HOPE_STREAM else []), by="gradient")
    if op is not HOPE_STEP:
        p.plant(
            ("signal_forward", "du by a convolution, not a correlation", _with(forward=True)),
            ("last_step_dropped", "the last cotangent left out",
             {"dy": lambda dy: dy * (np.arange(dy.shape[-1]) < dy.shape[-1] - 1)}),
            by="gradient",
        )  # fmt: skip
    p.plant(
        ("not_conjugated", "h and s for h* and s*", _with(conj=np.asarray)),
        ("as_jax", "the conjugate convention", lambda *args: [g.conj() for g in pulled(*args)]),
        by="gradient[complex64]",
    )
    return p.bugs
