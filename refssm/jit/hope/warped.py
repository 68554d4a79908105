"""Numba mirrors of refssm.hope.transfer and refssm.hope.aliased: sums on the warped circle.

Both need Σ_i h_i p_j^{i+1} at half of the warped nodes, and its adjoint, in double precision. Few
parameters use sums in registers; `MANY` or more use a nonuniform FFT [barnett2019finufft], whose
cost hardly depends on n. The aliased kernel is an inverse transform of the mirrored sums.

In registers, for real h, with sixteen parameters in a group and the middle power of the group in
front:

    Σ_i h_i p^{i+1} = p⁸ Σ_a p^{16a} Σ_b h_{16a+7+b} p^b,   b = −7 … 8
    Σ_b h_b p^b = Σ_{b≥0} (h_b + h_{−b}) cos bφ + i Σ_{b>0} (h_b − h_{−b}) sin bφ,   p = e^{iφ}

So one parameter costs two real products at a node instead of Horner's four, and they are products
of matrices in registers (`tables.py`); of a complex h, real and imaginary part are summed apart.
The adjoint is the same backwards, for Re and Im of Σ_j t_j p_j*^{i+1}.
"""

from functools import lru_cache

import finufft
import numpy as np
from numpy.fft import fft, ifft, irfft

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.hope import HOPE_KERNEL_ALIASED, HOPE_TRANSFER
from refssm.hope.circle import half_angles, slope
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.rows import adjacent
from refssm.jit._vectors.tables import FUSED, LANES, ROWS, correlate, product

BLOCK = 128  # nodes
GROUP, HALF = 16, 8
WAVES = HALF + 1  # cosines of a group; as many sines, the first is 0


@part(fastmath=FUSED)
def _all_pass(dt, c, s, start, p, slope, below):
    """p = (x − is)/(x + is), x = dt c, and slope/below = sin θ'/dt = 2 s c/(x² + s²), by the
    smaller of s/x and x/s, so no square under- or overflows. Returns the number of nodes."""
    apart()
    size = min(BLOCK, c.size - start)
    for j in range(size):
        p[0, j], p[1, j] = c[start + j], s[start + j]
    for j in range(size, BLOCK):  # beyond the last node: finite, for 0 · NaN is NaN
        p[0, j], p[1, j] = 1.0, 0.0
    for j in range(BLOCK):
        y, z = p[1, j], p[0, j]
        x = dt * z
        wide = abs(x) >= abs(y)
        r = (y if wide else x) / (x if wide else y)
        even = 1 / (1 + r * r)
        odd = (1 - r * r) * even
        p[0, j], p[1, j] = odd if wide else -odd, -2 * r * even
        slope[j] = 2 * (r if wide else z) * even
        below[j] = dt if wide else y
    return size


@part(fastmath=FUSED)
def _waves(p, cosines, sines):
    """Re p^b and Im p^b, b = 0 … HALF."""
    apart()
    for j in range(BLOCK):
        cosines[0, j], sines[0, j], cosines[1, j], sines[1, j] = 1.0, 0.0, p[0, j], p[1, j]
    for b in range(2, WAVES):
        k, m = b // 2, b - b // 2
        for j in range(BLOCK):
            re = cosines[k, j] * cosines[m, j] - sines[k, j] * sines[m, j]
            sines[b, j] = cosines[k, j] * sines[m, j] + sines[k, j] * cosines[m, j]
            cosines[b, j] = re


@part
def _factors(h, sets):
    """h_b + h_{−b}, and h_b − h_{−b}, of each group a, for `product`: ROWS groups side by side."""
    apart()
    found = np.zeros((2, sets, WAVES, ROWS))
    for i in range(h.size):
        a, b = i // GROUP, i % GROUP - (HALF - 1)
        place = a // ROWS, abs(b), a % ROWS
        found[0, *place] += h[i]
        found[1, *place] += h[i] if b > 0 else -h[i]
    return found


@part(fastmath=FUSED)
def _gathered(even, odd, groups, eighth, re, im):
    """p⁸ Σ_a p^{16a} (even_a + i odd_a) by Horner's rule."""
    apart()
    for j in range(BLOCK):
        re[j], im[j] = 0.0, 0.0
    for a in range(groups - 1, -1, -1):
        for j in range(BLOCK):
            x, y = eighth[0, j], eighth[1, j]
            c, s = x * x - y * y, 2 * x * y
            re[j], im[j] = re[j] * c - im[j] * s + even[a, j], re[j] * s + im[j] * c + odd[a, j]
    for j in range(BLOCK):
        x, y = eighth[0, j], eighth[1, j]
        re[j], im[j] = re[j] * x - im[j] * y, re[j] * y + im[j] * x


@part
def _put(parts, size, start, k):
    """Write complex numbers."""
    apart()
    for j in range(size):
        k[start + j] = complex(parts[0, j], parts[1, j])


@compiled(
    [f"(f8[:], f8[:], f8[:], f8[:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(n),(),(m),(m),(l)->(l)",
)
def summed_real(h, dt, c, s, length, k):
    """Σ_i h_i p_j^{i+1} of real h at the first half of the nodes; the rest are conjugates."""
    groups = (h.size + GROUP - 1) // GROUP
    sets = (groups + ROWS - 1) // ROWS
    lefts = _factors(h, sets)
    cosines, sines = np.zeros((WAVES, BLOCK)), np.zeros((WAVES, BLOCK))
    sums = np.zeros((2, ROWS * sets, BLOCK))
    p, eighth, parts = np.zeros((2, BLOCK)), np.zeros((2, BLOCK)), np.zeros((2, BLOCK))
    for start in range(0, c.size, BLOCK):
        size = _all_pass(dt[0], c, s, start, p, parts[0], parts[1])
        _waves(p, cosines, sines)
        for i in range(sets):
            there = slice(ROWS * i, ROWS * i + ROWS)
            product(lefts[0, i], cosines, sums[0, there])
            product(lefts[1, i], sines, sums[1, there])
        for j in range(BLOCK):
            eighth[0, j], eighth[1, j] = cosines[HALF, j], sines[HALF, j]
        _gathered(sums[0], sums[1], groups, eighth, parts[0], parts[1])
        _put(parts, size, start, adjacent(k))
    for j in range(c.size, k.size):
        k[j] = np.conj(k[k.size - j])


@part
def _folded(dk, start, size, nodes, parts):
    """t_j = dk_j + dk_{l−j}* where node l − j is not among the first ones."""
    apart()
    for j in range(BLOCK):
        parts[0, j], parts[1, j] = 0.0, 0.0
    for j in range(size):
        t = np.complex128(dk[start + j])
        other = dk.size - start - j
        if nodes <= other < dk.size:
            t += np.conj(np.complex128(dk[other]))
        parts[0, j], parts[1, j] = t.real, t.imag


@part(fastmath=FUSED)
def _turned_back(t, slope, eighth, groups, even, odd):
    """For each group a the parts of u = t p*^{16a+8} and of slope · u; each once in the rows that
    meet cosines, once in those that meet sines."""
    apart()
    for j in range(BLOCK):
        x, y = eighth[0, j], eighth[1, j]
        t[0, j], t[1, j] = t[0, j] * x + t[1, j] * y, t[1, j] * x - t[0, j] * y
    for a in range(groups):
        for j in range(BLOCK):
            x, y, re, im = eighth[0, j], eighth[1, j], t[0, j], t[1, j]
            even[2 * a, j], even[2 * a + 1, j] = re, slope[j] * im
            odd[2 * a, j], odd[2 * a + 1, j] = im, slope[j] * re
            c, s = x * x - y * y, 2 * x * y
            t[0, j], t[1, j] = re * c + im * s, im * c - re * s


@part
def _closed(even, odd, first, second):
    """The sums of all lanes, for ±b: Re u p*^b = Re u cos bφ + Im u sin bφ, and for the slope
    Im u p*^b = Im u cos bφ − Re u sin bφ."""
    apart()
    for i in range(first.size):
        a, b = i // GROUP, i % GROUP - (HALF - 1)
        sums = np.zeros(4)
        for imaginary in range(2):
            row = (2 * a + imaginary) * WAVES + abs(b)
            for lane in range(LANES):
                sums[2 * imaginary] += even[row, lane]
                sums[2 * imaginary + 1] += odd[row, lane]
        sign = 1.0 if b > 0 else -1.0
        first[i], second[i] = sums[0] + sign * sums[1], sums[2] - sign * sums[3]


@compiled(
    [f"({t}[:], f8[:], f8[:], f8[:], f8[:], f8[:], f8[:])" for t in ("c8", "c16")],
    "(l),(),(m),(m),(n)->(n),(n)",
)
def adjoint_real(dk, dt, c, s, count, first, second):
    """Re Σ_j dk_j p_j*^{i+1} and Im Σ_j dk_j sin θ'_j/dt p_j*^{i+1}, from half of the nodes."""
    groups = (first.size + GROUP - 1) // GROUP
    rows = 4 * ((2 * groups + 3) // 4)
    cosines, sines = np.zeros((WAVES, BLOCK)), np.zeros((WAVES, BLOCK))
    left, sums = np.zeros((2, rows, BLOCK)), np.zeros((2, rows * WAVES, LANES))
    p, eighth, t = np.zeros((2, BLOCK)), np.zeros((2, BLOCK)), np.zeros((2, BLOCK))
    slope = np.ones((2, BLOCK))
    for start in range(0, c.size, BLOCK):
        size = _all_pass(dt[0], c, s, start, p, slope[0], slope[1])
        _waves(p, cosines, sines)
        for j in range(BLOCK):
            eighth[0, j], eighth[1, j] = cosines[HALF, j], sines[HALF, j]
            slope[0, j] /= slope[1, j]
        _folded(dk, start, size, c.size, t)
        _turned_back(t, slope[0], eighth, groups, left[0], left[1])
        correlate(left[0], cosines, sums[0])
        correlate(left[1], sines, sums[1])
    _closed(sums[0], sums[1], first, second)


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


@mirror(HOPE_TRANSFER)
def hope_transfer(h, dt, *, l):
    """Computed in double precision and rounded once."""
    return summed(h, dt, l, np.result_type(h, dt, np.complex64))


@mirror(HOPE_TRANSFER)
def hope_transfer_vjp(dk, h, dt, *, l):
    kind = np.result_type(dk, h, dt, np.complex64)
    return unbroadcast_each((g.astype(kind) for g in adjoint(dk, h, dt)), (h, dt))


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased(h, dt, *, l):
    """Computed in double precision and rounded once."""
    dtype = np.result_type(h, dt)
    G = summed(h, dt, l, np.complex128)
    if l == 0:
        return np.zeros(G.shape, dtype)
    if dtype.kind == "c":
        return ifft(G).astype(dtype)
    return irfft(G[..., : l // 2 + 1], l).astype(dtype)


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    kind = np.result_type(dk, h, dt, np.complex64)
    wide = dk.astype(np.complex128)
    gradients = adjoint(fft(wide) / l if l else wide, h, dt)
    return unbroadcast_each((g.astype(kind) for g in gradients), (h, dt))
