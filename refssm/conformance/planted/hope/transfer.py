"""Planted bugs in HOPE's transfer function and its gradients."""

import numpy as np

from refssm._roots import roots_of_unity, turned
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.hope.parameters import plant_parameters, without_nyquist
from refssm.conformance.planted.planting import Planting, of_result
from refssm.hope import HOPE_KERNEL, HOPE_TRANSFER

TRANSFER = Planting(HOPE_TRANSFER, "complex64")
TRANSFER.usual()
plant_parameters(TRANSFER, lambda x, l: np.broadcast_to(x, (*x.shape[:-1], l)))


def _type(h, dt):
    return np.result_type(h, dt, np.complex64)


def _halves(l):
    """cos θ/2 and sin θ/2."""
    return turned(np.arange(l), 2 * l, np.float64)


def _at_angles(angles):
    """Σ_i h_i e^{−i(i+1)θ'} with θ' = angles(dt, l)."""

    def transfer(right, h, dt, *, l):
        E = np.exp(-1j * angles(dt[..., None], l)[..., None] * np.arange(1, h.shape[-1] + 1))
        return (h[..., None, :] * E).sum(-1).astype(_type(h, dt))

    return transfer


def published(h, dt, *, l):
    """ω by a rounded angle, z' by the quotient, its angle and powers, all in single precision."""
    return _by_the_quotient(_of_rounded_angle)(None, h, dt, l=l)


def _of_rounded_angle(l):
    turns = np.arange(l, dtype=np.float32) / np.float32(max(l, 1))
    return np.exp(np.complex64(2j * np.pi) * turns)


def _roots(l):
    return roots_of_unity(l, np.float32).conj()


def _of_rounded_root(l):
    root = np.repeat(_roots(l)[1 % max(l, 1)], l)
    root[:1] = 1
    return np.cumprod(root)


def _by_the_quotient(nodes):
    """Σ_i h_i e^{−i(i+1)θ'} in single precision, z' by the quotient of the bilinear map."""

    def transfer(right, h, dt, *, l):
        step, omega = single(dt)[..., None], nodes(l)
        z = ((1 + step) * omega + step - 1) / ((step - 1) * omega + step + 1)
        minus = -np.arange(1, h.shape[-1] + 1, dtype=np.float32)
        E = np.exp(1j * np.angle(z)[..., None] * minus)
        return (single(h)[..., None, :] * E).sum(-1).astype(_type(h, dt))

    return transfer


def _circle(dt, l):
    """p of angle −θ', before it is divided by its modulus, and cos θ/2 and sin θ/2."""
    c, s = _halves(l)
    return (dt * c - 1j * s) / (dt * c + 1j * s), c, s


def _of_eight_bits(dt, l):
    return -np.angle(np.round(256 * _circle(dt, l)[0]) / 256)


def _arc_cosine(dt, l):
    c, s = _halves(l)
    x = dt.astype(float) * c
    return np.arccos((x * x - s * s) / (x * x + s * s))


def _not_halved(dt, l):
    c, s = turned(np.arange(l), l, np.float64)
    return 2 * np.arctan2(s, dt * c)


def _not_doubled(dt, l):
    c, s = _halves(l)
    return np.arctan2(s, dt * c)


def _mirrored(change):
    """The lower half made of the upper one."""

    def wrong(G):
        l = G.shape[-1]
        upper = G[..., 1 : (l + 1) // 2]
        return np.concatenate([G[..., : l // 2 + 1], change(upper[..., ::-1])], axis=-1)

    return of_result(wrong)


def _two_halves(right, h, dt, *, l):
    first = right(h, dt, l=(l + 1) // 2)
    return np.concatenate([first, first[..., : l // 2][..., ::-1]], axis=-1)


TRANSFER.plant(
    ("published", "rounded angles, 1 − dt and ω cancel in single precision",
     _by_the_quotient(_of_rounded_angle)),
    ("quotient_in_single", "1 − dt and ω cancel in single precision", _by_the_quotient(_roots)),
    ("rounded_root", "ω as powers of one rounded root", _by_the_quotient(_of_rounded_root)),
    ("powers_multiplied_in_bfloat16", "powers of a p of eight bits", _at_angles(_of_eight_bits)),
    ("arc_cosine", "θ' by its cosine: the lower half of the circle above",
     _at_angles(_arc_cosine)),
    ("not_halved", "2 atan2(sin θ, dt cos θ)", _at_angles(_not_halved)),
    ("not_doubled", "atan2(sin θ/2, dt cos θ/2)", _at_angles(_not_doubled)),
    ("dilated", "θ' = θ/dt: what an exponential map would do",
     _at_angles(lambda dt, l: 2 * np.pi * np.arange(l) / max(l, 1) / dt)),
    ("nyquist_dropped", "0 at ω = −1", of_result(without_nyquist)),
    ("symmetric", "the lower half a mirror image, not conjugated", _mirrored(np.copy)),
    ("two_halves", "the published halves: half as many nodes, once more in reverse", _two_halves),
    ("nodes_conjugated", "e^(−2πij/l)", of_result(lambda G: np.roll(G[..., ::-1], 1, -1))),
    ("angle_negative", "z'^(+(i+1))",
     lambda right, h, dt, *, l: right(h.conj(), dt, l=l).conj()),
    ("half_circle", "e^(πij/l)",
     lambda right, h, dt, *, l: right(h, dt, l=2 * l)[..., :l].copy()),
    ("nodes_of_one_more", "nodes of l + 1",
     lambda right, h, dt, *, l: right(h, dt, l=l + 1)[..., :l].copy()),
    ("nodes_shifted", "ω_{j+1} for ω_j", of_result(lambda G: np.roll(G, -1, -1))),
    ("centred", "frequencies from −l/2 on", of_result(lambda G: np.fft.fftshift(G, axes=-1))),
    ("real_part", "only the real part kept", of_result(lambda G: G.real.astype(G.dtype))),
    ("truncated", "the transform of the first l steps of the kernel", lambda right, h, dt, *, l:
     np.fft.fft(HOPE_KERNEL.reference(h, dt, l=l)).astype(_type(h, dt))),
)  # fmt: skip
TRANSFER.plant(
    ("real_result", "a real result for real parameters", of_result(np.real)), by="value[float32]"
)
TRANSFER.plant(
    ("conjugates_for_complex", "conjugates in the lower half of a complex h too",
     _mirrored(np.conj)),
    by="value[complex64]",
)  # fmt: skip


@TRANSFER.bug("slope_of_circle", "sin θ for sin θ'/dt", by="gradient")
def _(right, dk, h, dt, *, l):
    dh = right(dk, h, dt, l=l)[0]
    p, c, s = _circle(dt[..., None], l)
    i = np.arange(1, h.shape[-1] + 1)
    moments = ((i * h)[..., None, :] * p[..., None] ** i).sum(-1)
    ddt = (dk * (2j * s * c * moments).conj()).sum(-1).real
    return dh, ddt.reshape(dt.shape).astype(dt.dtype) if ddt.size == dt.size else 0 * dt
