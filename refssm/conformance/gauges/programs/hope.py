"""Programs of HOPE's kernels and stream: powers at the nodes or signals of stages, each in several
ways.
"""

from math import ceil, sqrt

import numpy as np
from numpy.fft import fft, ifft

from refssm.hope.aliased import HOPE_KERNEL_ALIASED
from refssm.hope.allpass import cascade
from refssm.hope.circle import all_pass, half_angles, slope
from refssm.hope.impulses import pole
from refssm.hope.kernel import HOPE_KERNEL
from refssm.hope.stream import HOPE_STREAM
from refssm.hope.transfer import HOPE_TRANSFER

# With fewer nodes all of them are 1 or −1, and these powers are exact; those by angles are not
ROUNDED = 3

# Powers z'^−i, i = 1 … n, at all nodes: (…, l, n), in the precision of the arguments


def multiplied(h, dt, l):
    """Each power from the one before it."""
    p = np.repeat(_nodes(h, dt, l)[..., None], h.shape[-1], axis=-1)
    return np.cumprod(p, axis=-1)


def by_tables(h, dt, l):
    """i = aq + b: giant steps (z'^−q)^a times small steps z'^−b."""
    p, n = _nodes(h, dt, l)[..., None], h.shape[-1]
    q = max(1, ceil(sqrt(n)))
    small = np.cumprod(np.repeat(p, q, axis=-1), axis=-1)
    giant = np.repeat(small[..., -1:], -(-n // q), axis=-1)
    giant = np.cumprod(np.concatenate([np.ones_like(p), giant[..., 1:]], axis=-1), axis=-1)
    table = giant[..., :, None] * small[..., None, :]
    return table.reshape(*table.shape[:-2], -1)[..., :n]


def by_squares(h, dt, l):
    """NumPy's powers with integer exponents."""
    return _nodes(h, dt, l)[..., None] ** np.arange(1, h.shape[-1] + 1)


def from_rounded(h, dt, l):
    """The same powers of nodes in the precision of the arguments.

    Nodes from double precision are rounded once, and on a few copies they may happen to be exact.
    """
    kind = np.result_type(h.real, dt)
    c, s = (a.astype(kind) for a in half_angles(l, h, dt))
    x = dt[..., None] * c
    return ((x - 1j * s) / (x + 1j * s))[..., None] ** np.arange(1, h.shape[-1] + 1)


def _nodes(h, dt, l):
    return all_pass(h, dt, l).astype(np.result_type(h, dt, np.complex64))


def slope_of_angles(h, dt, l):
    """sin θ'/dt with the sine of a rounded θ', as in most programs: beside π it errs by u/dt."""
    c, s = half_angles(l, h, dt)
    theta = (2 * np.arctan2(s, dt[..., None] * c)).astype(dt.dtype)
    return np.sin(theta) / dt[..., None]


def through_powers(powers, slope=slope):
    """∂G_j/∂h_i = z'^−i,   ∂G_j/∂dt = i (sin θ'/dt) Σ_i i h_i z'^−i."""

    def vjp(dk, h, dt, *, l):
        if l < ROUNDED:
            return None
        E, i = powers(h, dt, l), np.arange(1, h.shape[-1] + 1, dtype=dt.dtype)
        turned = slope(h, dt, l).astype(dt.dtype)
        warped = 1j * turned * ((i * h)[..., None, :] * E).sum(-1)
        dh = (dk[..., :, None] * E.conj()).sum(-2)
        return dh, (dk * warped.conj()).sum(-1)

    return vjp


def through_transform(powers, slope=slope):
    """The gradient of the transfer function for the cotangent fft(dk)/l."""

    def vjp(dk, h, dt, *, l):
        return through_powers(powers, slope)(fft(dk) / np.float32(l), h, dt, l=l) if l else None

    return vjp


# Signals s_0 = u, s_1, … after each stage: (…, count, l), in the precision of the arguments


def by_rotations(dt, u, count):
    """From the states between the stages."""
    return cascade(dt, u, np.zeros((*dt.shape, count - 1), u.dtype))[0]


def in_waves(dt, u, count):
    """The outputs of `count` all-pass filters in a row, those of equal filter + time together."""
    rho, l = pole(dt)[..., None], u.shape[-1]
    batch = np.broadcast_shapes(dt.shape, u.shape[:-1])
    wave = np.zeros((*batch, count), np.result_type(dt, u))
    waves, earlier = [], wave
    for t in range(l + count - 1):
        later = np.zeros_like(wave)
        later[..., 1:] = rho * (wave[..., 1:] - wave[..., :-1]) + earlier[..., :-1]
        later[..., 0] = u[..., t] if t < l else 0
        waves.append(later)
        earlier, wave = wave, later
    j, k = np.arange(count)[:, None], np.arange(l)
    return np.stack(waves, axis=-2)[..., j + k, j]


def filtered(dt, u, count):
    """Stage after stage: y_k = ρ y_{k−1} + f_k with f_k = s_{k−1} − ρ s_k, by doubling in time."""
    rho, batch = pole(dt)[..., None], np.broadcast_shapes(dt.shape, u.shape[:-1])
    s = [np.broadcast_to(u, (*batch, u.shape[-1])).astype(np.result_type(dt, u))]
    for _ in range(count - 1):
        y, a, shift = _later(s[-1], 1) - rho * s[-1], rho, 1
        while shift < y.shape[-1]:
            y, a, shift = y + a * _later(y, shift), a * a, 2 * shift
        s.append(y)
    return np.stack(s, axis=-2)


def _later(y, steps):
    """y some steps later, after zeros."""
    return np.concatenate([np.zeros_like(y[..., :steps]), y[..., :-steps]], axis=-1)


def read(signals):
    """y_k = Σ_j h_j s_{j+1,k}."""

    def program(h, dt, u):
        s = signals(dt, u, h.shape[-1] + 1)
        return (h[..., :, None] * s[..., 1:, :]).sum(-2)

    return program


def of_impulse(signals):
    """The same for an impulse: the kernel."""
    return lambda h, dt, *, l: read(signals)(h, dt, _impulse(dt, l)) if l else None


def around_a_circle(h, dt, u):
    """The kernel from 8l nodes on a circle on which aliases decay, then a product of transforms."""
    l = u.shape[-1]
    if l == 0:
        return None
    kernel = _by_transform(h, dt, l)
    y = ifft(fft(kernel, 2 * l) * fft(u, 2 * l))[..., :l]
    return y if np.iscomplexobj(h) or np.iscomplexobj(u) else y.real


def kernel_around_a_circle(h, dt, *, l):
    """The kernel alone."""
    return _by_transform(h, dt, l) if l else None


def _by_transform(h, dt, l):
    m, kind = 8 * l, dt.dtype.type
    radius = float(np.finfo(kind).eps) ** (-1 / m)
    inverse = (np.exp(-2j * np.pi * np.arange(m) / m) / radius).astype(np.result_type(kind, 1j))
    rho = pole(dt)[..., None]
    stage = (inverse - rho) / (1 - rho * inverse)
    G = np.zeros(1, stage.dtype)
    for j in reversed(range(h.shape[-1])):
        G = (G + h[..., j, None]) * stage
    K = ifft(np.broadcast_to(G, (*np.broadcast_shapes(h.shape[:-1], dt.shape), m)))[..., :l]
    K = K * (radius ** np.arange(l)).astype(kind)
    return K if np.iscomplexobj(h) else K.real


def transformed(powers):
    """The inverse transform of G_j = Σ_i h_i z'^−i."""

    def program(h, dt, *, l):
        if l < ROUNDED:
            return None
        K = ifft((h[..., None, :] * powers(h, dt, l)).sum(-1))
        return K if np.iscomplexobj(h) else K.real

    return program


def _impulse(dt, l):
    return np.broadcast_to(np.arange(l) == 0, (*dt.shape, l)).astype(dt.dtype)


def through_responses(signals):
    """∂K_k/∂h_j = s_{j+1,k},   ∂s_j/∂dt = j (s_{j−1} − s_{j+1})/(2 dt)."""

    def vjp(dk, h, dt, *, l):
        if l == 0:
            return None
        n = h.shape[-1]
        met = (dk[..., None, :] * signals(dt, _impulse(dt, l), n + 2)).sum(-1)
        j = np.arange(1, n + 1, dtype=dt.dtype)
        warped = (h.conj() * j * (met[..., :-2] - met[..., 2:])).sum(-1) / (2 * dt)
        return met[..., 1:-1], warped

    return vjp


def _each(through, made):
    return {name: through(program) for name, program in made.items()}


POWERS = {
    "multiplied": multiplied,
    "by_tables": by_tables,
    "by_squares": by_squares,
    "from_rounded": from_rounded,
}
SIGNALS = {"by_rotations": by_rotations, "in_waves": in_waves, "filtered": filtered}
AGAIN_GRADIENTS = {
    HOPE_TRANSFER.name: {"of_angles": through_powers(by_squares, slope_of_angles)},
    HOPE_KERNEL_ALIASED.name: {"of_angles": through_transform(by_squares, slope_of_angles)},
}
OUTPUTS = {
    HOPE_KERNEL.name: {
        **_each(of_impulse, SIGNALS),
        "around_a_circle": kernel_around_a_circle,
    },
    HOPE_KERNEL_ALIASED.name: _each(transformed, POWERS),
    HOPE_STREAM.name: {**_each(read, SIGNALS), "around_a_circle": around_a_circle},
}
GRADIENTS = {
    HOPE_TRANSFER.name: _each(through_powers, POWERS),
    HOPE_KERNEL.name: _each(through_responses, SIGNALS),
    HOPE_KERNEL_ALIASED.name: _each(through_transform, POWERS),
}
