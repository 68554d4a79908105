"""Planted bugs in HOPE streams: the bilinear map, the order of h, the kernel's end, states, VJPs.

Here a wrong program has the arguments (right, h, dt, u, x0), where `right` is the right stream, and
returns (y, x), for each of the operators.
"""

import numpy as np

from refssm._declaration.arguments import several
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.hope.transfer import weighted
from refssm.conformance.planted.planting import Planting, instead
from refssm.hope import HOPE_STEP, HOPE_STREAM, HOPE_STREAM_STATEFUL
from refssm.hope.allpass import cascade, rotation, turning


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


def of_stages(numbers):
    """The cascade x ← a x + b s, s' = c x₋ + d s; `numbers(ρ, c, dt)` gives a, b and −a, c, d."""

    def stream(right, h, dt, u, x0):
        a, b, *others = numbers(*rotation(dt), dt)
        c, d = others or (b, -a)
        y = np.zeros_like(right(h, dt, u, x0)[0])
        x = np.broadcast_to(x0, (*y.shape[:-1], x0.shape[-1])).astype(np.result_type(dt, u, x0))
        for k in range(u.shape[-1]):
            s = u[..., k]
            for j in range(x.shape[-1]):
                x[..., j], s = a * x[..., j] + b * s, c * x[..., j] + d * s
                y[..., k] += h[..., j] * s
        return y, x

    return stream


def of_cascade(signals):
    """Σ_j h_j times other signals than s_{j+1}: signals(s, x), from s_0 … s_{n+1} and states."""

    def stream(right, h, dt, u, x0):
        s, x = cascade(dt, u, np.concatenate([x0, 0 * x0[..., :1]], axis=-1))
        return (h[..., None] * signals(s, x[..., :-1, 1:])).sum(-2), x[..., :-1, -1]

    return stream


def _pipelined(s, x):
    """Each stage gets the previous stage's signal of one step ago: stage j is j steps late."""
    late, l = np.zeros_like(s[..., 1:-1, :]), s.shape[-1]
    for j in range(min(late.shape[-2], l)):
        late[..., j, j:] = s[..., j + 1, : l - j]
    return late


def to_output(change):
    """Replace the output by change(right, h, dt, u, x0); the states are right."""
    return lambda right, *args: (change(right, *args), right(*args)[1])


def from_rest(right, h, dt, u):
    """The output from zero states."""
    return right(h, dt, u, np.zeros_like(h, dtype=u.dtype))[0]


def with_kernel(change, periods=1):
    """A bug whose impulse response is change(K, h, l): u has l steps, K periods·l."""

    def output(right, h, dt, u, x0):
        l = u.shape[-1]
        K = from_rest(right, h, dt, (np.arange(periods * l) == 0).astype(dt.dtype))
        more, y = change(K, h, l) - K[..., :l], right(h, dt, u, x0)[0].copy()
        for j in range(l):
            y[..., j:] += more[..., j, None] * u[..., : l - j]
        return y

    return to_output(output)


def _circular(right, h, dt, u, x0):
    """A product of spectra of l points, which adds the end of the output to its beginning."""
    silent = np.concatenate([u, np.zeros_like(u)], axis=-1)
    return right(h, dt, u, x0)[0] + from_rest(right, h, dt, silent)[..., u.shape[-1] :]


def _blocks_apart(right, h, dt, u, x0):
    y = right(h, dt, u, x0)[0]
    for i in range(64, u.shape[-1], 64):
        y[..., i : i + 64] = from_rest(right, h, dt, u[..., i : i + 64])
    return y


WRONG = [
    ("dt_inverted", "ρ = (dt − 1)/(dt + 1)", {"dt": lambda dt: 1 / dt}),
    ("dt_halved", "ρ = (1 − dt/2)/(1 + dt/2), as of a bilinear step", {"dt": lambda dt: dt / 2}),
    ("dt_doubled", "ρ = (1 − 2dt)/(1 + 2dt)", {"dt": lambda dt: 2 * dt}),
    ("dt_squared", "dt² for dt", {"dt": lambda dt: dt**2}),
    ("dt_at_most_one", "dt clipped at 1", {"dt": lambda dt: np.minimum(dt, 1)}),
    ("dt_at_least", "dt clipped at 0.1", {"dt": lambda dt: np.maximum(dt, 0.1)}),
    ("exponential_pole", "ρ = e^{−2dt}", of_stages(lambda rho, c, dt:
     (np.exp(-2 * dt), np.sqrt(-np.expm1(-4 * dt))))),
    ("euler_pole", "ρ = 1 − dt/4", of_stages(lambda rho, c, dt:
     (1 - dt / 4, np.sqrt(np.abs(1 - (1 - dt / 4) ** 2))))),
    ("unit_gain_lost", "c = dt/(1 + dt)", of_stages(lambda rho, c, dt: (rho, dt / (1 + dt)))),
    ("rounded_pole", "ρ in bfloat16", of_stages(lambda rho, c, dt: (bfloat16(rho), c))),
    ("low_passes", "poles without their zeros",  # s' = c x without −ρ s
     of_stages(lambda rho, c, dt: (rho, c, c, 0 * c))),
    ("zeros_inside", "+ρ s for −ρ s", of_stages(lambda rho, c, dt: (rho, c, c, rho))),
    ("new_state", "the signal from the state after the step",
     of_stages(lambda rho, c, dt: (rho, c, c * rho, c * c - rho))),
    ("one_early", "h_0 weighs the input: Σ h_j s_j", of_cascade(lambda s, x: s[..., :-2, :])),
    ("one_late", "Σ h_j s_{j+2}", of_cascade(lambda s, x: s[..., 2:, :])),
    ("parameters_reversed", "h backwards", {"h": lambda h: h[..., ::-1]}),
    ("first_lost", "h_0 dropped", {"h": weighted(lambda j: j > 0)}),
    ("last_lost", "the last h dropped", {"h": weighted(lambda j: j < len(j) - 1)}),
    ("two", "h beyond the first two dropped", {"h": weighted(lambda j: j < 2)}),
    # the newest parameters weighted more, as a recency bias does
    ("recency", "h_j (j + 1)^−½ for h_j", {"h": weighted(lambda j: (1.0 + j) ** -0.5)}),
    ("finite", "a filter of n taps whatever dt is",
     to_output(lambda right, h, dt, u, x0: right(h, np.ones_like(dt), u, x0)[0])),
    ("laguerre", "the states read, not what leaves the stages", of_cascade(lambda s, x: x)),
    # the all-pass with the other sign
    ("opposite_sign", "(ρ − z⁻¹)/(1 − ρ z⁻¹)", {"h": weighted(lambda j: (-1.0) ** (j + 1))}),
    ("skip_added", "u added", to_output(lambda right, h, dt, u, x0: right(h, dt, u, x0)[0] + u)),
]  # fmt: skip
ALONG_TIME = [
    ("aliased", "the kernel's end folded onto its beginning", with_kernel(
        lambda K, h, l: K.reshape(*K.shape[:-1], 8, l).sum(-2), periods=8)),
    ("circular", "the output's end on its beginning", to_output(_circular)),
    ("cut_at_n", "the kernel cut after n steps",
     with_kernel(lambda K, h, l: K * (np.arange(l) <= h.shape[-1]))),
    ("cut_at_half", "the kernel cut at half the length",
     with_kernel(lambda K, h, l: K * (np.arange(l) < max(1, l // 2)))),
    ("pipelined", "each stage a step later", of_cascade(_pipelined)),
    ("blocks_apart", "blocks of 64 steps from rest", to_output(_blocks_apart)),
    ("backwards", "u backwards", {"u": lambda u: u[..., ::-1]}),
]  # fmt: skip
COMPLEX = [
    ("conjugate_parameters", "h* for h", {"h": np.conj}),
    ("conjugate_signal", "u* for u", lambda right, h, dt, u, x0: right(h, dt, u.conj(), x0.conj())),
    ("real_parameters", "Re h for h", {"h": lambda h: h.real.astype(h.dtype)}),
]  # fmt: skip
OF_START = [
    ("start_dropped", "x0 taken as zero", lambda right, h, dt, u, x0: right(h, dt, u, 0 * x0)),
    ("start_reversed", "x0 with the last stage first",
     lambda right, h, dt, u, x0: right(h, dt, u, x0[..., ::-1])),
    ("start_not_normalised", "x0 as states without c",
     lambda right, h, dt, u, x0: right(h, dt, u, x0 * rotation(dt)[1][..., None])),
    ("start_ignored_in_batch_of_one", "x0 taken as zero where the batch is 1",
     lambda right, h, dt, u, x0: right(h, dt, u, x0 * (x0.shape[0] != 1))),
]  # fmt: skip


def to_state(change):
    """Replace the last states by change(x, dt, x0); the output is right."""
    return lambda right, h, dt, u, x0: (
        right(h, dt, u, x0)[0], change(right(h, dt, u, x0)[1], dt, x0),
    )  # fmt: skip


STATES = [
    ("state_reversed", "the last stage first", to_state(lambda x, dt, x0: x[..., ::-1].copy())),
    ("state_not_normalised", "states without c: 1/c as large",
     to_state(lambda x, dt, x0: x / rotation(dt)[1][..., None])),
    ("state_not_updated", "x0 returned", to_state(lambda x, dt, x0: 0 * x + x0)),
    ("state_of_one_stage", "only the first stage's",
     to_state(lambda x, dt, x0: x * (np.arange(x.shape[-1]) < 1))),
    ("state_in_half", "rounded to float16", to_state(lambda x, dt, x0: float16(x))),
    ("state_late", "turned by ρ once more",
     to_state(lambda x, dt, x0: x * rotation(dt)[0][..., None])),
]  # fmt: skip


def as_called(op):
    """Turn a program of (right, h, dt, u, x0) into one with the operator's arguments and types."""
    one = op is HOPE_STEP

    def adapt(stream):
        def program(right, h, dt, u, *start):
            def right_stream(h, dt, u, x0):
                y, *x = several(right(h, dt, u[..., 0] if one else u, *[x0][: len(start)]))
                return y[..., None] if one else y, *(x or [x0])

            x0 = start[0] if start else np.zeros_like(h, dtype=u.dtype)
            y, x = stream(right_stream, h, dt, u[..., None] if one else u, x0)
            types = op.output_types(h, dt, u, *start)
            typed = [a.astype(t) for a, t in zip((y[..., 0] if one else y, x), types, strict=False)]
            return tuple(typed) if start else typed[0]

        return program

    return adapt


BUGS = []
for _op in (HOPE_STREAM, HOPE_STREAM_STATEFUL, HOPE_STEP):
    _p, _streams = Planting(_op, "float32"), Planting(_op, "float32", adapt=as_called(_op))
    _p.usual()
    _streams.plant(*WRONG)
    _streams.plant(*COMPLEX, by="value[complex64]")
    if _op is not HOPE_STEP:
        _streams.plant(*ALONG_TIME)
        _streams.plant(("nan_spread", "0 · NaN of the future reaches the past",
                        {"u": lambda u: u + 0 * u.sum(-1, keepdims=True)}), by="nan")  # fmt: skip
    if _op is not HOPE_STREAM:
        _streams.plant(*OF_START)
        _streams.plant(*STATES, by="value" if _op is HOPE_STEP else "state")
    BUGS += [*_p.bugs, *_streams.bugs, *wrong_gradients(_op)]
