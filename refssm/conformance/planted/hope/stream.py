"""Planted bugs in HOPE streams: the map of the circle, the order of h, the kernel's end, states."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.hope.stream_vjp import plant_gradients
from refssm.conformance.planted.planting_old import Planting
from refssm.hope import HOPE_STEP, HOPE_STREAM, HOPE_STREAM_STATEFUL
from refssm.hope.allpass import cascade, rotation

RIGHT = HOPE_STREAM_STATEFUL.reference


def stages(a, b, c, d, u, x0):
    """x ← a x + b s, s' = c x₋ + d s: the cascade with other numbers for a rotation's."""
    n, l = x0.shape[-1], u.shape[-1]
    batch = np.broadcast_shapes(*(np.shape(r) for r in (a, b, c, d)), u.shape[:-1], x0.shape[:-1])
    s = np.zeros((*batch, n + 1, l), np.result_type(u, x0, *(np.asarray(r) for r in (a, b, c, d))))
    x = np.broadcast_to(x0, (*batch, n)).astype(s.dtype)
    s[..., 0, :] = u
    for k in range(l):
        for j in range(n):
            before, into = x[..., j].copy(), s[..., j, k]
            x[..., j] = a * before + b * into
            s[..., j + 1, k] = c * before + d * into
    return s, x


def with_rotation(change):
    """Another ρ and c for those of dt."""

    def stream(h, dt, u, x0):
        rho, c = (r.astype(dt.dtype) for r in change(dt))
        s, x = stages(rho, c, c, -rho, u, x0)
        return read(h, s), x

    return stream


def with_dt(change):
    """Another dt."""
    return lambda h, dt, u, x0: RIGHT(h, change(dt).astype(dt.dtype), u, x0)


def read(h, s):
    """Σ_j h_j s_{j+1}."""
    return (h[..., None] * s[..., 1:, :]).sum(-2)


def kernel(h, dt, l):
    """The true impulse response, l of it."""
    impulse = (np.arange(l) == 0).astype(dt.dtype)
    return HOPE_STREAM.reference(h, dt, impulse)


def convolved(u, k):
    """Σ_j k_j u_{i−j}."""
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1])
    y = np.zeros((*batch, u.shape[-1]), np.result_type(u, k))
    for j in range(min(k.shape[-1], u.shape[-1])):
        y[..., j:] += k[..., j, None] * u[..., : u.shape[-1] - j]
    return y


def with_kernel(change):
    """Another impulse response; the states are right."""

    def stream(h, dt, u, x0):
        y, x = RIGHT(h, dt, u, x0)
        K = kernel(h, dt, u.shape[-1])
        return y - convolved(u, K) + convolved(u, change(K, h, u.shape[-1])), x

    return stream


def _aliased(h, dt, u, x0):
    """The kernel's end folded onto its beginning."""
    y, x = RIGHT(h, dt, u, x0)
    l = u.shape[-1]
    long = kernel(h, dt, 8 * l)
    beyond = sum(long[..., i * l : (i + 1) * l] for i in range(1, 8))
    return y + convolved(u, beyond), x


def _circular(h, dt, u, x0):
    """A product of spectra of l points: the end of the output on its beginning."""
    y, x = RIGHT(h, dt, u, x0)
    l = u.shape[-1]
    silent = np.concatenate([u, np.zeros_like(u)], axis=-1)
    return y + HOPE_STREAM.reference(h, dt, silent)[..., l:], x


def _finite(h, dt, u, x0):
    """A filter of n taps whatever dt is."""
    return RIGHT(h, np.ones_like(dt), u, x0)[0], RIGHT(h, dt, u, x0)[1]


def _laguerre(h, dt, u, x0):
    """The states read, not the signals after the stages: Σ_j h_j L_j."""
    _, x = cascade(dt, u, x0)
    return (h[..., None] * x[..., 1:]).sum(-2), x[..., -1]


def _one_early(h, dt, u, x0):
    """Σ_j h_j s_j: h_0 weighs the input itself."""
    s, x = cascade(dt, u, x0)
    return (h[..., None] * s[..., :-1, :]).sum(-2), x[..., -1]


def _one_late(h, dt, u, x0):
    """Σ_j h_j s_{j+2}."""
    s, x = cascade(dt, u, np.concatenate([x0, 0 * x0[..., :1]], axis=-1))
    return (h[..., None] * s[..., 2:, :]).sum(-2), x[..., :-1, -1]


def _low_passes(h, dt, u, x0):
    """s' = c x without −ρ s."""
    rho, c = rotation(dt)
    s, x = stages(rho, c, c, 0 * c, u, x0)
    return read(h, s), x


def _signs(h, dt, u, x0):
    """(ρ − z⁻¹)/(1 − ρ z⁻¹): the all-pass with the other sign."""
    j = np.arange(h.shape[-1])
    return RIGHT((h * (-1.0) ** (j + 1)).astype(h.dtype), dt, u, x0)


def _plus(h, dt, u, x0):
    """s' = c x + ρ s."""
    rho, c = rotation(dt)
    s, x = stages(rho, c, c, rho, u, x0)
    return read(h, s), x


def _new_state(h, dt, u, x0):
    """s' from the state after the step."""
    rho, c = rotation(dt)
    s, x = stages(rho, c, c * rho, c * c - rho, u, x0)
    return read(h, s), x


def _pipelined(h, dt, u, x0):
    """Each stage takes what the one before gave a step ago: j steps late."""
    s, x = cascade(dt, u, x0)
    late = s.copy()
    for j in range(1, s.shape[-2]):
        late[..., j, :] = 0
        if j - 1 < u.shape[-1]:
            late[..., j, j - 1 :] = s[..., j, : u.shape[-1] - j + 1]
    return read(h, late), x[..., -1]


def _blocks_apart(h, dt, u, x0):
    """Blocks of 64 steps, each from rest."""
    y, x = RIGHT(h, dt, u, x0)
    for i in range(64, u.shape[-1], 64):
        y[..., i : i + 64] = HOPE_STREAM.reference(h, dt, u[..., i : i + 64])
    return y, x


def _backwards(h, dt, u, x0):
    return RIGHT(h, dt, u[..., ::-1], x0)


def _biased(h, dt, u, x0):
    """The newest parameters weighted more, as a recency bias does."""
    weights = (1.0 + np.arange(h.shape[-1])) ** -0.5
    return RIGHT((h * weights).astype(h.dtype), dt, u, x0)


def _kept(which):
    """Some of the parameters, the others zero."""

    def stream(h, dt, u, x0):
        kept = np.zeros_like(h)
        kept[..., which] = h[..., which]
        return RIGHT(kept, dt, u, x0)[0], RIGHT(h, dt, u, x0)[1]

    return stream


def _skip(h, dt, u, x0):
    y, x = RIGHT(h, dt, u, x0)
    return y + u, x


def _rounded(h, dt, u, x0):
    """ρ in bfloat16."""
    rho, c = rotation(dt)
    s, x = stages(bfloat16(rho), c, c, -bfloat16(rho), u, x0)
    return read(h, s), x


WRONG = {
    "dt_inverted": ("ρ = (dt − 1)/(dt + 1)", with_dt(lambda dt: 1 / dt)),
    "dt_halved": ("ρ = (1 − dt/2)/(1 + dt/2), as of a bilinear step", with_dt(lambda dt: dt / 2)),
    "dt_doubled": ("ρ = (1 − 2dt)/(1 + 2dt)", with_dt(lambda dt: 2 * dt)),
    "dt_squared": ("dt² for dt", with_dt(lambda dt: dt**2)),
    "dt_at_most_one": ("dt clipped at 1", with_dt(lambda dt: np.minimum(dt, 1))),
    "dt_at_least": ("dt clipped at 0.1", with_dt(lambda dt: np.maximum(dt, 0.1))),
    "exponential_pole": ("ρ = e^{−2dt}",
        with_rotation(lambda dt: (np.exp(-2 * dt), np.sqrt(-np.expm1(-4 * dt))))),
    "euler_pole": ("ρ = 1 − dt/4",
        with_rotation(lambda dt: (1 - dt / 4, np.sqrt(np.abs(1 - (1 - dt / 4) ** 2))))),
    "unit_gain_lost": ("c = dt/(1 + dt)",
        with_rotation(lambda dt: (rotation(dt)[0], dt / (1 + dt)))),
    "rounded_pole": ("ρ in bfloat16", _rounded),
    "one_early": ("h_0 weighs the input: Σ h_j s_j", _one_early),
    "one_late": ("Σ h_j s_{j+2}", _one_late),
    "parameters_reversed": ("h backwards",
        lambda h, dt, u, x0: RIGHT(h[..., ::-1], dt, u, x0)),
    "first_lost": ("h_0 dropped", _kept(slice(1, None))),
    "last_lost": ("the last h dropped", _kept(slice(-1))),
    "two": ("h beyond the first two dropped", _kept(slice(2))),
    "recency": ("h_j (j + 1)^−½ for h_j", _biased),
    "finite": ("a filter of n taps whatever dt is", _finite),
    "laguerre": ("the states read, not what leaves the stages", _laguerre),
    "low_passes": ("poles without their zeros", _low_passes),
    "opposite_sign": ("(ρ − z⁻¹)/(1 − ρ z⁻¹)", _signs),
    "zeros_inside": ("+ρ s for −ρ s", _plus),
    "new_state": ("the signal from the state after the step", _new_state),
    "skip_added": ("u added", _skip),
}  # fmt: skip
ALONG_TIME = {
    "aliased": ("the kernel's end folded onto its beginning", _aliased),
    "circular": ("the output's end on its beginning", _circular),
    "cut_at_n": ("the kernel cut after n steps",
        with_kernel(lambda K, h, l: K * (np.arange(l) <= h.shape[-1]))),
    "cut_at_half": ("the kernel cut at half the length",
        with_kernel(lambda K, h, l: K * (np.arange(l) < max(1, l // 2)))),
    "pipelined": ("each stage a step later", _pipelined),
    "blocks_apart": ("blocks of 64 steps from rest", _blocks_apart),
    "backwards": ("u backwards", _backwards),
}  # fmt: skip
WRONG_COMPLEX = {
    "conjugate_parameters": ("h* for h", lambda h, dt, u, x0: RIGHT(h.conj(), dt, u, x0)),
    "conjugate_signal": ("u* for u", lambda h, dt, u, x0: RIGHT(h, dt, u.conj(), x0.conj())),
    "real_parameters": ("Re h for h",
        lambda h, dt, u, x0: RIGHT(h.real.astype(h.dtype), dt, u, x0)),
}  # fmt: skip
FROM = {
    "start_dropped": ("x0 taken as zero", lambda h, dt, u, x0: RIGHT(h, dt, u, 0 * x0)),
    "start_reversed": ("x0 with the last stage first",
        lambda h, dt, u, x0: RIGHT(h, dt, u, x0[..., ::-1])),
    "start_not_normalised": ("x0 as states without c",
        lambda h, dt, u, x0: RIGHT(h, dt, u, (x0 * rotation(dt)[1][..., None]).astype(x0.dtype))),
    "start_ignored_in_batch_of_one": ("x0 taken as zero where the batch is 1",
        lambda h, dt, u, x0: RIGHT(h, dt, u, x0 * (x0.shape[0] != 1))),
}  # fmt: skip
STATES = {
    "state_reversed": ("the last stage first", lambda x, dt, x0: x[..., ::-1].copy()),
    "state_not_normalised": ("states without c: 1/c as large",
        lambda x, dt, x0: (x / rotation(dt)[1][..., None]).astype(x.dtype)),
    "state_not_updated": ("x0 returned", lambda x, dt, x0: 0 * x + x0),
    "state_of_one_stage": ("only the first stage's",
        lambda x, dt, x0: x * (np.arange(x.shape[-1]) < 1)),
    "state_in_half": ("rounded to float16", lambda x, dt, x0: float16(x)),
    "state_late": ("turned by ρ once more",
        lambda x, dt, x0: (x * rotation(dt)[0][..., None]).astype(x.dtype)),
}  # fmt: skip


def as_called(op, stream):
    """A function of (h, dt, u, x0) to (y, x), called as the operator is, in its types."""

    def typed(args, y):
        return [a.astype(t) for a, t in zip(y, op.output_types(*args), strict=False)]

    if op is HOPE_STREAM:
        return lambda h, dt, u: typed((h, dt, u), stream(h, dt, u, np.zeros_like(h, u.dtype)))[0]
    if op is HOPE_STREAM_STATEFUL:
        return lambda *args: tuple(typed(args, stream(*args)))

    def step(h, dt, u, x):
        y, x_next = stream(h, dt, u[..., None], x)
        return tuple(typed((h, dt, u, x), (y[..., 0], x_next)))

    return step


def _with_state(change):
    def stream(h, dt, u, x0):
        y, x = RIGHT(h, dt, u, x0)
        return y, change(x, dt, x0)

    return stream


def _plant(p: Planting) -> None:
    one, streams = p.op is HOPE_STEP, p.op is not HOPE_STREAM
    wrong = WRONG | ({} if one else ALONG_TIME) | (FROM if streams else {})
    for name, (what, stream) in wrong.items():
        p.forward(name, what)(as_called(p.op, stream))
    for name, (what, stream) in WRONG_COMPLEX.items():
        p.forward(name, what, dtype="complex64")(as_called(p.op, stream))
    for name, (what, state) in (STATES if streams else {}).items():
        p.forward(name, what, "value" if one else "state")(as_called(p.op, _with_state(state)))
    if not one:
        p.forward("nan_spread", "0 · NaN of the future reaches the past", "nan")(
            as_called(p.op, lambda h, dt, u, x0: RIGHT(h, dt, u + 0 * u.sum(-1, keepdims=True), x0))
        )
    plant_gradients(p)


DEVIATIONS = []
for _op in (HOPE_STREAM, HOPE_STREAM_STATEFUL, HOPE_STEP):
    _p = Planting(_op, "float32")
    _p.usual()
    _plant(_p)
    DEVIATIONS += _p.bugs
