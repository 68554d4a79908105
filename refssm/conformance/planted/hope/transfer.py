"""Planted bugs in HOPE's transfer function and its VJP; many fit its kernels too."""

import numpy as np

from refssm._numerics.roots import roots_of_unity, turned
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.hope import HOPE_KERNEL, HOPE_TRANSFER


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
