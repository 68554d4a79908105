"""Σ_i h_i p_j^{i+1} at the warped nodes, and its adjoint; two of the mirrors use them.

Blocks of nodes stay in the L1 cache, across SIMD lanes. Few parameters use Horner's rule, n fused
multiply-adds per node; `MANY` or more use a nonuniform FFT [barnett2019finufft], whose cost hardly
depends on n. All in double precision.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from functools import lru_cache

import finufft
import numpy as np
from numba import njit

from refssm.broadcasting import with_batch
from refssm.hope.circle import half_angles
from refssm.jit._gufunc import compiled

BLOCK = 256
MANY = 1024  # from this many parameters on, a nonuniform FFT is faster: docs/operators/hope.md
ACCURACY = 1e-14


@lru_cache(8)
def angles(l):
    """cos θ/2 and sin θ/2, computed once per length."""
    both = half_angles(l, np.float64(1))
    for x in both:
        x.flags.writeable = False
    return both


@njit(error_model="numpy")
def _all_pass(dt, c, s, p_re, p_im):
    """p = (x − is)/(x + is), x = dt c, by Smith's division: no square under- or overflows."""
    for b in range(c.size):
        x = dt * c[b]
        if abs(x) >= abs(s[b]):
            r = s[b] / x
            p_re[b], p_im[b] = (1 - r * r) / (1 + r * r), -2 * r / (1 + r * r)
        else:
            r = x / s[b]
            p_re[b], p_im[b] = (r * r - 1) / (1 + r * r), -2 * r / (1 + r * r)


@njit(error_model="numpy", fastmath={"contract"})
def _horner(h_re, h_im, p_re, p_im, re, im):
    """p (h_0 + p (h_1 + …)) for a block of nodes; each load and store serves four parameters."""
    re[:], im[:] = 0, 0
    fours = h_re.size // 4 * 4
    for i in range(h_re.size - 1, fours - 1, -1):
        a, a_ = h_re[i], h_im[i]
        for j in range(re.size):
            x, y = re[j] + a, im[j] + a_
            re[j], im[j] = x * p_re[j] - y * p_im[j], x * p_im[j] + y * p_re[j]
    for i in range(fours - 4, -1, -4):
        a, b, c, d = h_re[i], h_re[i + 1], h_re[i + 2], h_re[i + 3]
        a_, b_, c_, d_ = h_im[i], h_im[i + 1], h_im[i + 2], h_im[i + 3]
        for j in range(re.size):
            p, q = p_re[j], p_im[j]
            x, y = re[j] + d, im[j] + d_
            x, y = x * p - y * q + c, x * q + y * p + c_
            x, y = x * p - y * q + b, x * q + y * p + b_
            x, y = x * p - y * q + a, x * q + y * p + a_
            re[j], im[j] = x * p - y * q, x * q + y * p


@compiled(
    [f"(f8[:], f8[:], f8[:], f8[:], f8[:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(n),(n),(),(m),(m),(l)->(l)",
)
def _transfer(h_re, h_im, dt, c, s, length, k):
    """k at the first m nodes; if these are half of the nodes, the rest are their conjugates."""
    p_re, p_im, re, im = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, c.size, BLOCK):
        stop = min(start + BLOCK, c.size)
        size = stop - start
        _all_pass(dt[0], c[start:stop], s[start:stop], p_re[:size], p_im[:size])
        _horner(h_re, h_im, p_re[:size], p_im[:size], re[:size], im[:size])
        for b in range(size):
            k[start + b] = complex(re[b], im[b])
    for j in range(c.size, k.size):
        k[j] = np.conj(k[k.size - j])


@njit(error_model="numpy", fastmath={"contract", "reassoc"})
def _moments(t_re, t_im, p_re, p_im, rates, first, second):
    """Add Σ_j t_j p_j*^{i+1}, and the same sum times the rates; multiplies t by p* each time."""
    for i in range(first.size):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        for j in range(t_re.size):
            x = t_re[j] * p_re[j] + t_im[j] * p_im[j]
            y = t_im[j] * p_re[j] - t_re[j] * p_im[j]
            t_re[j], t_im[j] = x, y
            a += x
            b += y
            c += x * rates[j]
            d += y * rates[j]
        first[i] += complex(a, b)
        second[i] += complex(c, d)


@compiled(
    ["(c16[:], f8[:], f8[:], f8[:], f8[:], f8[:], c16[:], c16[:])"],
    "(l),(),(l),(l),(l),(n)->(n),(n)",
)
def _adjoint(dk, dt, c, s, slope, count, first, second):
    """Σ_j dk_j p_j*^{i+1}, and the same sum times sin θ'/dt."""
    p_re, p_im, re, im = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    rates = np.empty(BLOCK)
    first[:], second[:] = 0, 0
    for start in range(0, c.size, BLOCK):
        stop = min(start + BLOCK, c.size)
        size = stop - start
        _all_pass(dt[0], c[start:stop], s[start:stop], p_re[:size], p_im[:size])
        for b in range(size):
            re[b], im[b], rates[b] = dk[start + b].real, dk[start + b].imag, slope[start + b]
        _moments(re[:size], im[:size], p_re[:size], p_im[:size], rates[:size], first, second)


def summed(h, dt, l, nodes, kind):
    """Σ_i h_i p_j^{i+1} at the first `nodes` of l nodes; the rest are conjugates; dtype `kind`."""
    c, s = (x[:nodes] for x in angles(l))
    dt = dt.astype(np.float64)
    if h.shape[-1] >= MANY and nodes and np.isfinite(dt).all():
        return _mirrored(_nonuniform(h, dt, c, s), l).astype(kind)
    h_re, h_im = (x.astype(np.float64) for x in (h.real, h.imag))
    return _transfer(h_re, h_im, dt, c, s, np.empty(l, kind))


def adjoint(dk, dt, n, slope):
    """Σ_j dk_j p_j*^{i+1}, i < n, and the same sum times `slope`."""
    c, s = angles(dk.shape[-1])
    dk, dt = dk.astype(np.complex128), dt.astype(np.float64)
    if n >= MANY and dk.size and np.isfinite(dt).all():
        return tuple(_nonuniform_adjoint(x, dt, c, s, n) for x in (dk, dk * slope))
    return _adjoint(dk, dt, c, s, slope, np.empty(n))


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
