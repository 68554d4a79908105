"""Planted bugs in HOPE's transfer function and its gradients."""

import numpy as np

from refssm._roots import roots_of_unity, turned
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.hope.base import plant_gradients, plant_parameters
from refssm.conformance.planted.planting_old import Planting
from refssm.hope import HOPE_KERNEL, HOPE_TRANSFER

PLANTING = Planting(HOPE_TRANSFER, "complex64")
right, forward, gradient = PLANTING.right, PLANTING.forward, PLANTING.gradient
PLANTING.usual()
plant_parameters(PLANTING, lambda x, l: np.broadcast_to(x, (*x.shape[:-1], l)))
plant_gradients(PLANTING)


def _type(h, dt):
    return np.result_type(h, dt, np.complex64)


def _summed(angles, h, dt):
    """Σ_i h_i e^{−i(i+1)θ'}."""
    E = np.exp(-1j * angles[..., None] * np.arange(1, h.shape[-1] + 1))
    return (h[..., None, :] * E).sum(-1).astype(_type(h, dt))


def _halves(l):
    """cos θ/2 and sin θ/2."""
    return turned(np.arange(l), 2 * l, np.float64)


def published(h, dt, *, l):
    """ω by a rounded angle, z' by the quotient, its angle and powers, all in single precision."""
    turns = np.arange(l, dtype=np.float32) / np.float32(max(l, 1))
    return _by_the_quotient(np.exp(np.complex64(2j * np.pi) * turns), h, dt)


def _by_the_quotient(omega, h, dt):
    """Σ_i h_i e^{−i(i+1)θ'} in single precision, z' by the quotient of the bilinear map."""
    step = single(dt)[..., None]
    z = ((1 + step) * omega + step - 1) / ((step - 1) * omega + step + 1)
    minus = -np.arange(1, h.shape[-1] + 1, dtype=np.float32)
    return (single(h)[..., None, :] * np.exp(1j * np.angle(z)[..., None] * minus)).sum(-1)


forward("published", "rounded angles, 1 − dt and ω cancel in single precision")(
    lambda h, dt, *, l: published(h, dt, l=l).astype(_type(h, dt))
)
forward("quotient_in_single", "1 − dt and ω cancel in single precision")(
    lambda h, dt, *, l: _by_the_quotient(roots_of_unity(l, np.float32).conj(), h, dt).astype(
        _type(h, dt)
    )
)


@forward("rounded_root", "ω as powers of one rounded root")
def _rounded_root(h, dt, *, l):
    root = np.repeat(roots_of_unity(l, np.float32).conj()[1 % max(l, 1)], l)
    root[:1] = 1
    return _by_the_quotient(np.cumprod(root), h, dt).astype(_type(h, dt))


@forward("powers_multiplied_in_bfloat16", "powers of a p of eight bits")
def _powers_of_eight_bits(h, dt, *, l):
    c, s = _halves(l)
    x = dt[..., None] * c
    p = (x - 1j * s) / (x + 1j * s)
    rough = np.round(256 * p) / 256
    return _summed(-np.angle(rough), h, dt)


@forward("arc_cosine", "θ' by its cosine: the lower half of the circle above")
def _arc_cosine(h, dt, *, l):
    c, s = _halves(l)
    x = dt.astype(float)[..., None] * c
    return _summed(np.arccos((x * x - s * s) / (x * x + s * s)), h, dt)


@forward("not_halved", "2 atan2(sin θ, dt cos θ)")
def _not_halved(h, dt, *, l):
    c, s = turned(np.arange(l), l, np.float64)
    return _summed(2 * np.arctan2(s, dt[..., None] * c), h, dt)


@forward("not_doubled", "atan2(sin θ/2, dt cos θ/2)")
def _not_doubled(h, dt, *, l):
    c, s = _halves(l)
    return _summed(np.arctan2(s, dt[..., None] * c), h, dt)


@forward("dilated", "θ' = θ/dt: what an exponential map would do")
def _dilated(h, dt, *, l):
    return _summed(2 * np.pi * np.arange(l) / max(l, 1) / dt[..., None], h, dt)


@forward("nyquist_dropped", "0 at ω = −1")
def _nyquist_dropped(h, dt, *, l):
    G = right(h, dt, l=l)
    if l % 2 == 0 and l:
        G[..., l // 2] = 0
    return G


@forward("symmetric", "the lower half a mirror image, not conjugated")
def _symmetric(h, dt, *, l):
    G = right(h, dt, l=l)
    G[..., l // 2 + 1 :] = G[..., 1 : (l + 1) // 2][..., ::-1]
    return G


@forward(
    "conjugates_for_complex", "conjugates in the lower half of a complex h too", dtype="complex64"
)
def _conjugates_for_complex(h, dt, *, l):
    G = right(h, dt, l=l)
    G[..., l // 2 + 1 :] = G[..., 1 : (l + 1) // 2][..., ::-1].conj()
    return G


@forward("two_halves", "the published halves: half as many nodes, once more in reverse")
def _two_halves(h, dt, *, l):
    first = right(h, dt, l=(l + 1) // 2)
    return np.concatenate([first, first[..., : l // 2][..., ::-1]], axis=-1)


forward("nodes_conjugated", "e^(−2πij/l)")(
    lambda h, dt, *, l: np.roll(right(h, dt, l=l)[..., ::-1], 1, -1)
)
forward("angle_negative", "z'^(+(i+1))")(lambda h, dt, *, l: right(h.conj(), dt, l=l).conj())
forward("half_circle", "e^(πij/l)")(lambda h, dt, *, l: right(h, dt, l=2 * l)[..., :l].copy())
forward("nodes_of_one_more", "nodes of l + 1")(
    lambda h, dt, *, l: right(h, dt, l=l + 1)[..., :l].copy()
)
forward("nodes_shifted", "ω_{j+1} for ω_j")(lambda h, dt, *, l: np.roll(right(h, dt, l=l), -1, -1))
forward("centred", "frequencies from −l/2 on")(
    lambda h, dt, *, l: np.fft.fftshift(right(h, dt, l=l), axes=-1)
)
forward("real_part", "only the real part kept")(
    lambda h, dt, *, l: right(h, dt, l=l).real.astype(_type(h, dt))
)
forward("real_result", "a real result for real parameters", dtype="float32")(
    lambda h, dt, *, l: right(h, dt, l=l).real
)
forward("truncated", "the transform of the first l steps of the kernel")(
    lambda h, dt, *, l: np.fft.fft(HOPE_KERNEL.reference(h, dt, l=l)).astype(_type(h, dt))
)


@gradient("slope_of_circle", "sin θ for sin θ'/dt")
def _slope_of_circle(dk, h, dt, *, l):
    dh = PLANTING.right_vjp(dk, h, dt, l=l)[0]
    c, s = _halves(l)
    x = dt[..., None] * c
    p = (x - 1j * s) / (x + 1j * s)
    i = np.arange(1, h.shape[-1] + 1)
    moments = ((i * h)[..., None, :] * p[..., None] ** i).sum(-1)
    ddt = (dk * (2j * s * c * moments).conj()).sum(-1).real
    return dh, ddt.reshape(dt.shape).astype(dt.dtype) if ddt.size == dt.size else 0 * dt


DEVIATIONS = PLANTING.bugs
