"""Planted bugs in HOPE's transfer function, in its kernels, and in recency biases, with their VJPs.

Many mistakes in the transfer function fit the kernels too, the true and the aliased one.
"""

from math import log

import numpy as np

from refssm._numerics.roots import roots_of_unity, turned
from refssm.conformance.planted.arithmetic import bfloat16, single
from refssm.conformance.planted.planting import Planting, instead, of_each_result, of_result
from refssm.hope import (
    HOPE_KERNEL,
    HOPE_KERNEL_ALIASED,
    HOPE_RECENCY_EXPONENTIAL,
    HOPE_RECENCY_POWER,
    HOPE_TRANSFER,
)
from refssm.hope.impulses import all_pass_responses, pole


def plant_parameters(p: Planting, constant, beyond=1024) -> None:
    """Plant the mistakes that fit anything with HOPE's parameters and a step.

    `constant(x, l)` is the result for a system that only multiplies by x.
    """
    p.plant(
        ("index_base", "z'^(−i) for z'^(−(i+1)): h_0 passes at once", lambda right, h, dt, *, l:
         right(h[..., 1:], dt, l=l) + constant(h[..., :1], l)),
        *WRONG,
        ("tail_unwritten", f"nothing written beyond {beyond}",
         of_result(lambda k: np.where(np.arange(k.shape[-1]) < beyond, k, 0))),
    )  # fmt: skip
    p.plant(("parameters_conjugated", "h* for h", {"h": np.conj}), by="value[complex64]")
    p.plant(*GRADIENTS, by="gradient")
    p.plant(*GRADIENTS_COMPLEX, by="gradient[complex64]")


def weighted(weights):
    """The parameters times a function of their indices."""
    return lambda h: (h * weights(np.arange(h.shape[-1]))).astype(h.dtype)


def _step(of=np.array, by=np.ones_like):
    """The gradient of dt, computed for other parameters or multiplied by a function of dt."""
    return lambda right, dk, h, dt, *, l: (
        right(dk, h, dt, l=l)[0], right(dk, of(h), dt, l=l)[1] * by(dt),
    )  # fmt: skip


WRONG = [
    ("one_more", "z'^(−(i+2))", {"h": lambda h: np.concatenate([0 * h[..., :1], h], axis=-1)}),
    ("step_inverted", "1/dt for dt", {"dt": lambda dt: 1 / dt}),
    ("step_ignored", "dt = 1", {"dt": np.ones_like}),
    ("step_halved", "the bilinear map of step 2 taken for step 1", {"dt": lambda dt: dt / 2}),
    ("step_clipped", "dt at most 0.1", {"dt": lambda dt: np.minimum(dt, 0.1)}),
    ("step_floored", "dt at least 1e-3", {"dt": lambda dt: np.maximum(dt, 1e-3)}),
    ("step_exponentiated", "log dt taken for dt", {"dt": np.exp}),
    ("sign_alternating", "−z' for z'", {"h": weighted(lambda i: (-1.0) ** i)}),
    ("parameters_reversed", "h_{n−1−i} for h_i", {"h": lambda h: h[..., ::-1]}),
    ("last_parameter", "the last of several left out",
     {"h": lambda h: h[..., : max(1, h.shape[-1] - 1)]}),
    ("tail_of_parameters", "parameters beyond a multiple of 32 left out",
     {"h": lambda h: h[..., : h.shape[-1] // 32 * 32 or h.shape[-1]]}),
    ("recency_bias", "h_i e^(−i/100): a bias of the layer in the operator",
     {"h": weighted(lambda i: np.exp(-i / 100))}),
    ("doubled", "the factor 2 of conjugate pairs", of_result(lambda k: 2 * k)),
]  # fmt: skip
GRADIENTS = [
    ("last_dropped", "the last entry left out",
     {"dk": lambda dk: dk * (np.arange(dk.shape[-1]) < dk.shape[-1] - 1)}),
    ("index_base", "i for i + 1 in ddt", _step(of=weighted(lambda i: i / (i + 1)))),
    ("parameters_forgotten", "ddt without h", _step(of=lambda h: 0 * h + 1)),
    ("doubled", "the factor 2 once more", {"dk": lambda dk: 2 * dk}),
    ("sign_of_map", "ddt with the other sign", {"dt": np.negative}),
    ("logarithmic", "the gradient of log dt", _step(by=lambda dt: dt)),
    ("inverse_forgotten", "ddt without 1/dt", _step(by=lambda dt: dt * dt)),
    ("step_fixed", "no gradient for dt", {"dt": lambda g: 0 * g}),
    ("halved", "½ of 1/(2 dt) once more", {"dt": lambda g: g / 2}),
    ("rotated", "dh one place on", {"h": lambda g: np.roll(g, 1, -1)}),
]  # fmt: skip
GRADIENTS_COMPLEX = [
    ("as_jax", "the conjugate convention", of_each_result(np.conj)),
    ("not_conjugated", "h* for h", lambda right, dk, h, dt, *, l: right(dk, h.conj(), dt, l=l)),
    ("cotangent_conjugated", "dk* for dk", {"dk": np.conj}),
]  # fmt: skip
TRANSFER = Planting(HOPE_TRANSFER, "complex64")
TRANSFER.usual()
plant_parameters(TRANSFER, lambda x, l: np.broadcast_to(x, (*x.shape[:-1], l)))


def _at_angles(angles, halves=2):
    """Σ_i h_i e^{−i(i+1)θ'}, θ' = angles(dt, cos θ/2, sin θ/2), or with θ if `halves` is 1."""

    def transfer(right, h, dt, *, l):
        theta = angles(dt[..., None].astype(float), *turned(np.arange(l), halves * l, np.float64))
        E = np.exp(-1j * theta[..., None] * np.arange(1, h.shape[-1] + 1))
        return (h[..., None, :] * E).sum(-1).astype(np.result_type(h, dt, np.complex64))

    return transfer


def _on_circle(dt, c, s):
    return (dt * c - 1j * s) / (dt * c + 1j * s)


def _roots(l):
    return roots_of_unity(l, np.float32).conj()


def _by_the_quotient(nodes):
    """Σ_i h_i e^{−i(i+1)θ'} in single precision, with z' as a quotient by the bilinear map."""

    def transfer(right, h, dt, *, l):
        step, omega = single(dt)[..., None], nodes(l)
        z = ((1 + step) * omega + step - 1) / ((step - 1) * omega + step + 1)
        minus = -np.arange(1, h.shape[-1] + 1, dtype=np.float32)
        E = np.exp(1j * np.angle(z)[..., None] * minus)
        return (single(h)[..., None, :] * E).sum(-1).astype(np.result_type(h, dt, np.complex64))

    return transfer


def published(h, dt, *, l):
    """Single precision throughout: ω by a rounded angle, z' by the quotient, then its angle."""
    turns = np.arange(l, dtype=np.float32) / np.float32(max(l, 1))
    omega = np.exp(np.complex64(2j * np.pi) * turns)
    return _by_the_quotient(lambda l: omega)(None, h, dt, l=l)


def without_nyquist(G):
    """G with 0 at ω = −1."""
    return np.where(2 * np.arange(G.shape[-1]) == G.shape[-1], 0, G)


def two_halves(right, h, dt, *, l):
    """Half as many nodes, then the same values in reverse order."""
    first = right(h, dt, l=(l + 1) // 2)
    return np.concatenate([first, first[..., : l // 2][..., ::-1]], axis=-1)


def _mirrored(G):
    """The lower half is the mirror image of the upper half."""
    l = G.shape[-1]
    return np.concatenate([G[..., : l // 2 + 1], G[..., 1 : (l + 1) // 2][..., ::-1]], axis=-1)


TRANSFER.plant(
    ("published", "rounded angles, 1 − dt and ω cancel in single precision",
     lambda right, h, dt, *, l: published(h, dt, l=l)),
    ("quotient_in_single", "1 − dt and ω cancel in single precision", _by_the_quotient(_roots)),
    ("rounded_root", "ω as powers of one rounded root",  # products of 1, ω, ω, …
     _by_the_quotient(lambda l: np.cumprod(_roots(l)[np.minimum(np.arange(l), 1)]))),
    ("powers_multiplied_in_bfloat16", "powers of a p of eight bits",
     _at_angles(lambda *circle: -np.angle(np.round(256 * _on_circle(*circle)) / 256))),
    ("arc_cosine", "θ' by its cosine: the lower half of the circle above", _at_angles(
        lambda dt, c, s: np.arccos(((dt * c) ** 2 - s * s) / ((dt * c) ** 2 + s * s)))),
    ("not_halved", "2 atan2(sin θ, dt cos θ)",
     _at_angles(lambda dt, c, s: 2 * np.arctan2(s, dt * c), halves=1)),
    ("not_doubled", "atan2(sin θ/2, dt cos θ/2)",
     _at_angles(lambda dt, c, s: np.arctan2(s, dt * c))),
    ("dilated", "θ' = θ/dt: what an exponential map would do",
     _at_angles(lambda dt, c, s: 2 * np.arctan2(s, c) / dt)),
    ("nyquist_dropped", "0 at ω = −1", of_result(without_nyquist)),
    ("symmetric", "the lower half a mirror image, not conjugated", of_result(_mirrored)),
    ("two_halves", "the published halves: half as many nodes, once more in reverse", two_halves),
    ("nodes_conjugated", "e^(−2πij/l)", of_result(lambda G: np.roll(G[..., ::-1], 1, -1))),
    ("angle_negative", "z'^(+(i+1))", lambda right, h, dt, *, l: right(h.conj(), dt, l=l).conj()),
    ("half_circle", "e^(πij/l)", lambda right, *x, l: right(*x, l=2 * l)[..., :l]),
    ("nodes_of_one_more", "nodes of l + 1", lambda right, *x, l: right(*x, l=l + 1)[..., :l]),
    ("nodes_shifted", "ω_{j+1} for ω_j", of_result(lambda G: np.roll(G, -1, -1))),
    ("centred", "frequencies from −l/2 on", of_result(lambda G: np.fft.fftshift(G, axes=-1))),
    ("real_part", "only the real part kept", of_result(lambda G: G.real.astype(G.dtype))),
    ("truncated", "the transform of the first l steps of the kernel",
     lambda right, *x, l: np.fft.fft(HOPE_KERNEL.reference(*x, l=l))),
)  # fmt: skip
TRANSFER.plant(
    ("real_result", "a real result for real parameters", of_result(np.real)), by="value[float32]"
)
TRANSFER.plant(
    ("conjugates_for_complex", "conjugates in the lower half of a complex h too", of_result(
        lambda G: np.where(2 * np.arange(G.shape[-1]) > G.shape[-1], _mirrored(G).conj(), G))),
    by="value[complex64]",
)  # fmt: skip


@TRANSFER.bug("slope_of_circle", "sin θ for sin θ'/dt", by="gradient")
def _(right, dk, h, dt, *, l):
    c, s = turned(np.arange(l), 2 * l, np.float64)
    i = np.arange(1, h.shape[-1] + 1)
    powers = _on_circle(dt[..., None], c, s)[..., None] ** i
    moments = ((i * h)[..., None, :] * powers).sum(-1)
    ddt = (dk * (2j * s * c * moments).conj()).sum(-1).real
    ddt = ddt.reshape(dt.shape).astype(dt.dtype) if ddt.size == dt.size else 0 * dt
    return right(dk, h, dt, l=l)[0], ddt


WHOLE, ALIASED = Planting(HOPE_KERNEL, "float32"), Planting(HOPE_KERNEL_ALIASED, "float32")
whole, transfer = HOPE_KERNEL.reference, HOPE_TRANSFER.reference


def _transformed(spectrum, inverse=np.fft.ifft):
    """The inverse transform of spectrum(h, dt, l); its real part if the arguments are real."""

    def kernel(right, h, dt, *, l):
        K, dtype = inverse(spectrum(h, dt, l))[..., :l] if l else h[..., :0], np.result_type(h, dt)
        return (K if dtype.kind == "c" else K.real).astype(dtype)

    return kernel


for _p in (WHOLE, ALIASED):
    _p.usual()
    plant_parameters(_p, lambda x, l: x * (np.arange(l) == 0), beyond=64)  # x at time 0
    _p.plant(
        ("reversed", "time backwards", of_result(lambda K: K[..., ::-1].copy())),
        ("one_late", "K_{k−1} for K_k", of_result(lambda K: np.roll(K, 1, -1))),
        ("last_step", "the last step unwritten",
         of_result(lambda K: K * (np.arange(K.shape[-1]) < K.shape[-1] - 1))),
        ("first_lost", "K_0 = 0, as for dt = 1",
         of_result(lambda K: K * (np.arange(K.shape[-1]) > 0))),
    )  # fmt: skip
    _p.plant(("real_part", "only the real part kept", of_result(lambda K: K.real.astype(K.dtype))),
             by="value[complex64]")  # fmt: skip


def _cascade(stage):
    """The kernel of stages (a + b x)/(1 − c x) with a, b, c = stage(ρ), in double precision."""

    def kernel(right, h, dt, *, l):
        a, b, c = stage(pole(dt.astype(float)))
        s = np.zeros((l, *dt.shape))
        s[:1] = 1
        K = np.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), l), np.result_type(h, dt))
        for j in range(h.shape[-1]):
            s = a * s + b * np.concatenate([0 * s[:1], s[:-1]])
            for k in range(1, l):
                s[k] += c * s[k - 1]
            K = K + h[..., j, None] * np.moveaxis(s, 0, -1)
        return K.astype(np.result_type(h, dt))

    return kernel


WHOLE.plant(
    ("low_passes", "(1 − ρ) x/(1 − ρx): no all-pass", _cascade(lambda rho: (0, 1 - rho, rho))),
    ("zeros_forgotten", "x/(1 − ρx)", _cascade(lambda rho: (0, 1, rho))),
    ("poles_forgotten", "x − ρ: a kernel of length n", _cascade(lambda rho: (-rho, 1, 0))),
    ("sign_of_zero", "(x + ρ)/(1 − ρx)", _cascade(lambda rho: (rho, 1, rho))),
    ("numerator_reversed", "(1 − ρx)/(1 − ρx): nothing", _cascade(lambda rho: (1, -rho, rho))),
    ("stage_negative", "(ρ − x)/(1 − ρx)", _cascade(lambda rho: (rho, -1, rho))),
    ("aliased", "the l-point inverse transform", instead(HOPE_KERNEL_ALIASED.reference)),
    ("fir", "h_{k−1}, though dt is not 1", {"dt": lambda dt: 0 * dt + 1}),
    ("truncated", "nothing beyond n steps", lambda right, h, dt, *, l:
     np.where(np.arange(l) <= h.shape[-1], right(h, dt, l=l), 0)),
    ("twice_as_long", "the inverse transform of 2l samples",
     _transformed(lambda h, dt, l: transfer(h, dt, l=2 * l))),
    ("states_in_bfloat16", "the states of the stages in eight bits", lambda right, h, dt, *, l:
     (h[..., None] * bfloat16(all_pass_responses(dt, h.shape[-1] + 1, l)[..., 1:, :])).sum(-2)
     .astype(np.result_type(h, dt))),
)  # fmt: skip
WHOLE.plant(("pole_in_single", "ρ in single precision for double",
             {"dt": lambda dt: single(dt).astype(dt.dtype)}), by="value[float64]")  # fmt: skip
WHOLE.plant(
    ("differences_reversed", "s_{j+1} − s_{j−1}: ddt of the inverted step", {"dt": np.negative}),
    ("aliased", "the gradient of the aliased kernel", instead(HOPE_KERNEL_ALIASED.bare_vjp)),
    by="gradient",
)
ALIASED.plant(
    ("true_kernel", "the first l steps, not wrapped", instead(whole)),
    ("unnormalised", "1/l forgotten", of_result(lambda K: K.shape[-1] * K)),
    ("normalised_twice", "1/l twice", of_result(lambda K: K / max(K.shape[-1], 1))),
    ("forward_transform", "fft/l for ifft: time reversed",
     _transformed(lambda h, dt, l: transfer(h, dt, l=l), lambda G: np.fft.fft(G) / G.shape[-1])),
    ("two_halves", "half as many samples, once more in reverse",
     _transformed(lambda h, dt, l: two_halves(transfer, h, dt, l=l))),
    ("nyquist_dropped", "0 at ω = −1",
     _transformed(lambda h, dt, l: without_nyquist(transfer(h, dt, l=l)))),
    ("next_period_only", "K_k + K_{k+l}, later periods left out",
     lambda right, *x, l: whole(*x, l=2 * l)[..., :l] + whole(*x, l=2 * l)[..., l:]),
)  # fmt: skip
ALIASED.plant(
    ("hermitian_taken", "irfft for a complex h too", lambda right, h, dt, *, l:
     np.fft.irfft(transfer(h, dt, l=l)[..., : l // 2 + 1], l).astype(np.result_type(h, dt))),
    by="value[complex64]",
)  # fmt: skip
ALIASED.plant(
    ("transform_forgotten", "1/l without the transform of dk", lambda right, dk, *x, l:
     HOPE_TRANSFER.bare_vjp((dk / max(l, 1)).astype(np.result_type(dk, "c8")), *x, l=l)),
    ("inverse_transform", "ifft(dk) for fft(dk)/l", lambda right, dk, *x, l:
     HOPE_TRANSFER.bare_vjp(np.fft.ifft(dk), *x, l=l)),
    by="gradient",
)  # fmt: skip


POWER = Planting(HOPE_RECENCY_POWER, "float32")
EXPONENTIAL = Planting(HOPE_RECENCY_EXPONENTIAL, "float32")


def _j(h):
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


for _p in (POWER, EXPONENTIAL):
    _p.usual()
    _p.plant(
        ("reversed", "the oldest weighted as the newest",
         lambda right, h, rate: right(h[..., ::-1], rate)[..., ::-1]),
        ("unit_mean", "weights of mean 1", lambda right, h, rate:
         right(h, rate) / right(np.ones_like(h.real), rate).mean(-1, keepdims=True)),
        ("first_lost", "h_0 dropped", lambda right, h, rate: right(h, rate) * (_j(h) > 0)),
        ("twice", "applied twice", lambda right, h, rate: right(right(h, rate), rate)),
        ("forgotten", "not applied", lambda right, h, rate: right(h, 0 * rate)),
        ("of_squares", "the weights of |h|²", lambda right, h, rate: right(h, rate / 2)),
    )  # fmt: skip
    _p.plant(
        ("conjugated", "h*", {"h": np.conj}),
        ("real_part", "Re h", {"h": lambda h: h.real.astype(h.dtype)}),
        by="value[complex64]",
    )
    _p.plant(
        ("parameters_unweighted", "dh = dy",
         lambda right, dy, h, rate: (dy.astype(h.dtype), right(dy, h, rate)[1])),
        ("rate_missing", "no gradient of the rate", of_result(lambda dh, dr: (dh, 0 * dr))),
        ("rate_sign", "the rate's with the other sign", of_result(lambda dh, dr: (dh, -dr))),
        ("parameters_reversed", "dh backwards", {"h": lambda g: g[..., ::-1]}),
        ("rate_of_logarithm", "the rate's gradient halved", of_result(lambda dh, dr: (dh, dr / 2))),
        by="gradient",
    )  # fmt: skip
    _p.plant(("as_jax", "the conjugate convention", {"h": np.conj}), by="gradient[complex64]")
POWER.plant(
    ("from_two", "(j + 2)^γ", lambda right, h, g: h * (_j(h) + 2) ** g[..., None]),
    ("from_zero", "max(j, 1)^γ", lambda right, h, g: h * np.maximum(_j(h), 1) ** g[..., None]),
    ("sign", "(j + 1)^−γ", {"gamma": np.negative}),
    ("natural", "e^{γj}", lambda right, h, g: HOPE_RECENCY_EXPONENTIAL.reference(h, -g)),
    ("linear", "1 + γ log(j + 1)", lambda right, h, g: h * (1 + g[..., None] * np.log(_j(h) + 1))),
    ("log10", "log₁₀ for log", {"gamma": lambda g: g / log(10)}),
    ("whole_power", "γ rounded", {"gamma": np.round}),
    ("square", "γ² for γ", {"gamma": lambda g: g * np.abs(g)}),
    ("positive_only", "γ below 0 taken as 0", {"gamma": lambda g: np.maximum(g, 0)}),
)  # fmt: skip
EXPONENTIAL.plant(
    ("from_one", "e^{−β(j+1)}", lambda right, h, b: right(h * np.exp(-b[..., None]), b)),
    ("sign", "e^{βj}", {"beta": np.negative}),
    ("polynomial", "(j + 1)^−β", lambda right, h, b: HOPE_RECENCY_POWER.reference(h, -b)),
    ("base_two", "2^{−βj}", {"beta": lambda b: b * log(2)}),
    ("first_order", "(1 − β)^j", lambda right, h, b: h * (1 - b[..., None]) ** _j(h)),
    ("square", "e^{−βj²}", lambda right, h, b: h * np.exp(-b[..., None] * _j(h) ** 2)),
    ("mean_index", "β/n for β", lambda right, h, b: right(h, b / max(1, h.shape[-1]))),
    ("growth_clipped", "β below 0 taken as 0", {"beta": lambda b: np.maximum(b, 0)}),
    (
        "rate_clipped",
        "β beyond ¼ taken as ¼",
        {"beta": lambda b: np.minimum(b, b.dtype.type(0.25))},
    ),
)
