"""Honest diagonal systems: any linear scan between matrix products, kernels, SciPy's filter."""

import numpy as np
from scipy import signal

from honest import Honest
from honest.scan.base import backwards, chunked, one_earlier, tree
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each
from refssm.conformance.planted.scan.right import hillis_steele, started
from refssm.scan import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
)


def times(x, M):
    """M x_k for every k."""
    return x @ M.mT


def summed(p, q):
    """Σ_k p_k q_kᵀ over time."""
    return p.mT @ q


def decays_and_inputs(a, B, u):
    """a_k and B u_k, both (…, l, n)."""
    b = times(u, B)
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    return np.broadcast_to(a, shape), np.broadcast_to(b, shape)


def by(scan):
    """A function that computes the states x_k by a linear scan."""

    def states(a, B, u, x0):
        return started(scan)(*decays_and_inputs(a, B, u), x0)

    return states


def by_powers(a, B, u, x0):
    """x_k = a^(k+1) x0 + Σ_j a^(k−j) B u_j: the kernel, where a is constant in time."""
    a, b = decays_and_inputs(a, B, u)
    powers = np.cumprod(a, axis=-2)  # a, a², …
    x = np.empty(b.shape, np.result_type(a, b, x0))
    for k in range(b.shape[-2]):
        past = (powers[..., :k, :][..., ::-1, :] * b[..., :k, :]).sum(-2)
        x[..., k, :] = powers[..., k, :] * x0 + past + b[..., k, :]
    return x


def by_filter(a, B, u, x0):
    """SciPy's recursive filter of order one, mode by mode, where a is constant in time."""
    a, b = decays_and_inputs(a, B, u)
    x = np.empty(b.shape, np.result_type(a, b, x0))
    start = np.broadcast_to(x0, x[..., 0, :].shape)
    for i in np.ndindex(*b.shape[:-2]):
        for n in range(b.shape[-1]):
            feedback = np.array([1, -a[i][0, n]], x.dtype)
            carried = np.array([a[i][0, n] * start[i][n]], x.dtype)
            one, driven = np.ones(1, x.dtype), b[i][:, n].astype(x.dtype)
            x[(*i, slice(None), n)] = signal.lfilter(one, feedback, driven, zi=carried)[0]
    return x


def at_rest(a, B, u):
    """A zero state."""
    batch = np.broadcast_shapes(a.shape[:-2], B.shape[:-2], u.shape[:-2])
    return np.zeros((*batch, B.shape[-2]), np.finfo(a.dtype).dtype)


def called(op: Operator, states):
    """The operator, with states from `states(a, B, u, x0)`, where a is (l, n) or (1, n)."""
    both, real = op is DIAGONAL_SSM_BIDIRECTIONAL, "real" in op.name

    def forward(a, B, C, D, u, x0=None):
        a = a if "varying" in op.name else a[..., None, :]
        start = at_rest(a, B, u) if x0 is None else x0
        x = states(a, B, u, start)
        if both:
            future = states(a, B, u[..., ::-1, :], start)[..., ::-1, :]
            x = np.concatenate([x, future], axis=-1)
        y = times(x, C)
        y = (2 * y.real if real else y) + times(u, D)
        return y if x0 is None else (y, x[..., -1, :].copy())

    return forward


def pulled_back(scan, dy, dx, a, B, C, u, x0):
    """(da_k, dB, dC, du, dx0): the adjoint scan by `scan`, with all states in memory."""
    decay, b = decays_and_inputs(a, B, u)
    x, back = started(scan)(decay, b, x0), times(dy, C.mT.conj())
    back = np.concatenate([back[..., :-1, :], back[..., -1:, :] + dx[..., None, :]], axis=-2)
    g = backwards(scan, back, decay)
    da = one_earlier(x, x0).conj() * g
    dx0 = (decay[..., :1, :].conj() * g[..., :1, :])[..., 0, :]
    du = times(g, B.mT.conj())
    return da, summed(g, u.conj()), summed(dy, x.conj()), du, dx0


def gradients(op: Operator, scan):
    """The operator's VJP by a linear scan."""
    stateful, factor = op.form == "stateful", 2 if "real" in op.name else 1

    def vjp(dy, *args):
        a, B, C, D, u, *x0 = args[1:] if stateful else args
        a_k = a if "varying" in op.name else a[..., None, :]
        start = x0[0] if x0 else at_rest(a_k, B, u)
        dx = args[0] if stateful else np.zeros_like(start)
        through = _through(op, scan, factor * dy, dx, a_k, B, C, u, start)
        da, dB, dC, du, dx0 = through
        da = unbroadcast(da, a) if a_k is a else unbroadcast(da.sum(-2), a)
        du = du + times(dy, D.mT.conj())
        given = (dB, dC, summed(dy, u.conj()), du, *([dx0] if x0 else []))
        return (da, *unbroadcast_each(given, (B, C, D, u, *x0)))

    return vjp


def _through(op, scan, dy, dx, a, B, C, u, x0):
    """The gradients through the states, in one direction or in both."""
    if op is not DIAGONAL_SSM_BIDIRECTIONAL:
        return pulled_back(scan, dy, dx, a, B, C, u, x0)
    n, flip = a.shape[-1], (..., slice(None, None, -1), slice(None))
    past = pulled_back(scan, dy, dx, a, B, C[..., :n], u, x0)
    future = pulled_back(scan, dy[flip], dx, a, B, C[..., n:], u[flip], x0)
    dC = np.concatenate([past[2], future[2]], axis=-1)
    return past[0] + future[0], past[1] + future[1], dC, past[3] + future[3][flip], past[4]


SEVEN = (
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
    DIAGONAL_SSM,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_BIDIRECTIONAL,
)
VARYING = {"tree": by(tree), "chunked_64": by(chunked(64))}
CONSTANT = {"chunked_16": by(chunked(16)), "powers": by_powers, "filter": by_filter}
IMPLEMENTATIONS = []
for _op in SEVEN:
    _ways = VARYING if "varying" in _op.name else CONSTANT
    _doubling = called(_op, by(hillis_steele)), gradients(_op, hillis_steele)
    IMPLEMENTATIONS += [
        Honest(_op.name, "hillis_steele", *_doubling),
        *(Honest(_op.name, name, called(_op, states)) for name, states in _ways.items()),
    ]
