"""Σ_i h_i p_j^{i+1} at the warped nodes, and its adjoint; two of the mirrors use them.

Few parameters use sums in registers (warped.py); `MANY` or more use a nonuniform FFT
[barnett2019finufft], whose cost hardly depends on n. All in double precision.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from functools import lru_cache

import finufft
import numpy as np

from refssm._numerics.broadcasting import with_batch
from refssm.hope.circle import half_angles, slope
from refssm.jit.hope.warped import adjoint_real, summed_real

MANY = 1024  # from this many parameters on, a nonuniform FFT is faster: docs/operators/hope.md
ACCURACY = 1e-14


@lru_cache(8)
def angles(l):
    """cos θ/2 and sin θ/2, computed once per length."""
    both = half_angles(l, np.float64(1))
    for x in both:
        x.flags.writeable = False
    return both


def summed(h, dt, l, kind):
    """Σ_i h_i p_j^{i+1} at l nodes; dtype `kind`."""
    nodes = _half(l)
    c, s = (x[:nodes] for x in angles(l))
    dt = dt.astype(np.float64)
    if h.shape[-1] >= MANY and l and np.isfinite(dt).all():
        if h.dtype.kind == "c":
            return _nonuniform(h, dt, *angles(l)).astype(kind)
        return _mirrored(_nonuniform(h, dt, c, s), l).astype(kind)
    if h.dtype.kind != "c":
        return summed_real(h.astype(np.float64), dt, c, s, np.empty(l, kind))
    wide = np.empty(l, np.complex128)
    re, im = (summed_real(x.astype(np.float64), dt, c, s, wide) for x in (h.real, h.imag))
    return (re + 1j * im).astype(kind)


def adjoint(dk, h, dt):
    """dh_i = Σ_j dk_j p_j*^{i+1}, real for real h, and ddt."""
    n, i = h.shape[-1], np.arange(1, h.shape[-1] + 1)
    dt = dt.astype(np.float64)
    c, s = angles(dk.shape[-1])
    if n >= MANY and dk.size and np.isfinite(dt).all():
        wide = dk.astype(np.complex128)
        dh, warped = (
            _nonuniform_adjoint(x, dt, c, s, n)
            for x in (wide, wide * slope(np.float64(1), dt, dk.shape[-1]))
        )
        return dh, -1j * (i * h.conj() * warped).sum(-1)
    c, s = (x[: _half(dk.shape[-1])] for x in (c, s))
    dh, warped = adjoint_real(dk, dt, c, s, np.empty(n))
    if h.dtype.kind != "c":
        return dh, (i * h * warped).sum(-1)
    # Re of −i dk is Im of dk; Im of −i dk is −Re of dk
    imaginary, minus_real = adjoint_real(-1j * dk, dt, c, s, np.empty(n))
    return dh + 1j * imaginary, (i * (h.real * warped + h.imag * minus_real)).sum(-1)


def _half(l):
    """The number of nodes up to l/2; the others are conjugates."""
    return min(l, l // 2 + 1)


def _warped(dt, c, s, n):
    """θ', and the factor that shifts the modes −⌊n/2⌋ … to 1 … n."""
    theta = 2 * np.arctan2(s, dt * c)
    return theta, np.exp(-1j * (1 + n // 2) * theta)


def _nonuniform(h, dt, c, s):
    """Row by row, because each row has its own nodes; on one thread, for reproducible results."""
    n, batch = h.shape[-1], np.broadcast_shapes(h.shape[:-1], dt.shape)
    h, dt = with_batch(h.astype(np.complex128), 1, batch), np.broadcast_to(dt, batch)
    k = np.empty((*batch, c.size), np.complex128)
    for row in np.ndindex(*batch):
        theta, turn = _warped(dt[row], c, s, n)
        k[row] = turn * finufft.nufft1d2(theta, h[row], eps=ACCURACY, isign=-1, nthreads=1)
    return k


def _nonuniform_adjoint(dk, dt, c, s, n):
    """The adjoint of `_nonuniform`."""
    batch = np.broadcast_shapes(dk.shape[:-1], dt.shape)
    dk, dt = with_batch(dk, 1, batch), np.broadcast_to(dt, batch)
    sums = np.empty((*batch, n), np.complex128)
    for row in np.ndindex(*batch):
        theta, turn = _warped(dt[row], c, s, n)
        weights = dk[row] * turn.conj()
        sums[row] = finufft.nufft1d1(theta, weights, n, eps=ACCURACY, isign=1, nthreads=1)
    return sums


def _mirrored(k, l):
    """All l nodes from the first ones; the rest are conjugates."""
    rest = k[..., 1 : l - k.shape[-1] + 1]
    return np.concatenate([k, rest[..., ::-1].conj()], axis=-1)
