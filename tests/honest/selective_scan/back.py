"""Gradients of the eight selective scans, from those of (u, dt, A, B, C, x0) -> (y, x)."""

import numpy as np

from honest.scan.base import tree
from honest.selective_scan.orders import one_state
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.scan.right import hillis_steele
from refssm.conformance.planted.selective_scan.forms import MAMBA, SELECTIVE, biased, rest, sigmoid
from refssm.conformance.planted.selective_scan.right import discrete, segmented


def by_reverse_scan(scan):
    """With all states in memory; the adjoint is the same linear scan in reversed time."""

    def back(dy, dx, u, dt, A, B, C, x0, resets):
        a, b = discrete(u, dt, A, B, C, x0)
        kind = np.result_type(dy, dx, a, b, C, x0)
        resets = np.zeros(u.shape[-1:], bool) if resets is None else resets
        kept = np.where(resets[..., None], 0, a).astype(kind)
        x = segmented(a, b, x0, resets)
        start = np.broadcast_to(x0[..., None, :], x[..., :1, :].shape)
        before = np.concatenate([start, x[..., :-1, :]], axis=-2)
        sent = (C.conj() * dy[..., None]).astype(kind) + 0 * kept
        sent[..., -1, :] += dx
        shifted = np.concatenate([kept[..., 1:, :], 0 * kept[..., :1, :]], axis=-2).conj()
        g = scan(shifted[..., ::-1, :], sent[..., ::-1, :])[..., ::-1, :]
        return _parts(u, dt, A, B, dy, before, x, kept, g)

    return back


def step_back(dy, dx, u, dt, A, B, C, x0, resets):
    """With all states in memory; the adjoint is computed step by step."""
    a, b = discrete(u, dt, A, B, C, x0)
    kind = np.result_type(dy, dx, a, b, C, x0)
    x, before = np.empty(b.shape, kind), np.empty(b.shape, kind)
    kept = a.astype(kind) if resets is None else np.where(resets[..., None], 0, a).astype(kind)
    state = np.broadcast_to(x0, b[..., 0, :].shape)
    for k in range(b.shape[-2]):
        before[..., k, :], state = state, kept[..., k, :] * state + b[..., k, :]
        x[..., k, :] = state
    g, carried = np.empty(b.shape, kind), np.broadcast_to(dx, x[..., 0, :].shape)
    for k in range(b.shape[-2] - 1, -1, -1):
        g[..., k, :] = carried + dy[..., k, None] * C[..., k, :].conj()
        carried = kept[..., k, :].conj() * g[..., k, :]
    return _parts(u, dt, A, B, dy, before, x, kept, g)


def _parts(u, dt, A, B, dy, before, x, kept, g):
    """The gradients of all arguments, before batch axes are summed."""
    e = kept.conj() * (before.conj() * g)
    du = dt * np.einsum("...n,...n->...", B.conj(), g)
    ddt = np.einsum("...n,...n->...", B.conj(), u.conj()[..., None] * g)
    ddt = ddt + np.einsum("...n,...ln->...l", A.conj(), e)
    dA = np.einsum("...l,...ln->...n", dt, e)
    dB, dC = (dt * u.conj())[..., None] * g, dy[..., None] * x.conj()
    return du, ddt, dA, dB, dC, kept[..., 0, :].conj() * g[..., 0, :]


def selective(back):
    """VJPs of the selective scan, of its forms from a state and packed, and of one step."""

    def scan(dy, u, dt, A, B, C):
        start = rest(u, dt, A, B, C)
        gradients = back(dy, start, u, dt, A, B, C, start, None)[:-1]
        return unbroadcast_each(gradients, (u, dt, A, B, C))

    def stateful(dy, dx, u, dt, A, B, C, x0):
        gradients = back(dy, dx, u, dt, A, B, C, x0, None)
        return unbroadcast_each(gradients, (u, dt, A, B, C, x0))

    def packed(dy, u, dt, A, B, C, resets):
        start = rest(u, dt, A, B, C)
        gradients = back(dy, start, u, dt, A, B, C, start, resets)[:-1]
        return *unbroadcast_each(gradients, (u, dt, A, B, C)), None

    def step(dy, dx, u, dt, A, B, C, x):
        B, C = B[..., None, :], C[..., None, :]
        alone = (u[..., None], dt[..., None], A, B, C, x)
        du, ddt, dA, dB, dC, dx = stateful(dy[..., None], dx, *alone)
        return du[..., 0], ddt[..., 0], dA, dB[..., 0, :], dC[..., 0, :], dx

    return dict(zip(SELECTIVE, (scan, stateful, packed, step), strict=True))


def mamba_parts(back, dy, dx, arguments, x0, resets):
    """Gradients at every step of (u, dt, A, B, C, D, z, dt_bias, x0)."""
    u, dt, A, B, C, D, z, dt_bias = arguments
    step, open_ = biased(dt, dt_bias), sigmoid(z)
    s = one_state(u, step, A, B, C, x0, resets)[0] + D[..., None] * u
    gate = z * open_
    ds = gate * dy
    dz = (open_ + gate * sigmoid(-z)) * (s.conj() * dy).real
    du, dstep, dA, dB, dC, dx0 = back(ds, dx, u, step, A, B, C, x0, resets)
    ddt = dstep.real * sigmoid(dt + dt_bias[..., None])
    dD = np.einsum("...l,...l->...", u.conj(), ds)
    return du + D[..., None].conj() * ds, ddt, dA, dB, dC, dD, dz, ddt.sum(-1), dx0


def mamba(back):
    """VJPs of Mamba's four operators."""

    def scan(dy, *args):
        start = rest(*args[:5])
        gradients = mamba_parts(back, dy, start, args, start, None)[:-1]
        return unbroadcast_each(gradients, args)

    def stateful(dy, dx, *args):
        return unbroadcast_each(mamba_parts(back, dy, dx, args[:-1], args[-1], None), args)

    def packed(dy, *args):
        *others, resets = args
        start = rest(*args[:5])
        gradients = mamba_parts(back, dy, start, others, start, resets)[:-1]
        return *unbroadcast_each(gradients, others), None

    def step(dy, dx, u, dt, A, B, C, D, z, dt_bias, x):
        B, C = B[..., None, :], C[..., None, :]
        alone = (u[..., None], dt[..., None], A, B, C, D, z[..., None], dt_bias, x)
        du, ddt, dA, dB, dC, dD, dz, db, dx = stateful(dy[..., None], dx, *alone)
        return du[..., 0], ddt[..., 0], dA, dB[..., 0, :], dC[..., 0, :], dD, dz[..., 0], db, dx

    return dict(zip(MAMBA, (scan, stateful, packed, step), strict=True))


def family(back):
    """VJPs of all eight operators, by name."""
    return selective(back) | mamba(back)


TREE, HILLIS_STEELE = by_reverse_scan(tree), by_reverse_scan(hillis_steele)
