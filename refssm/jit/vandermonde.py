"""Numba mirrors of refssm.vandermonde: two short tables of powers, and one real matrix product.

j = aq + b with q ≈ √l, so Σ_n v_n e^{x_n j} = Σ_n (v_n e^{x_n a q}) e^{x_n b}: with real and
imaginary parts apart, a product of l/q × 2n by 2n × q, whose sums stay in registers. Repeated
products would drift, so an entry of a table is the product of one exponential for each digit of its
index in base 4. All in double precision; single precision is rounded once.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.tables import COLUMNS, FUSED, REORDERED, ROWS, product
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL


@part
def divided(l):
    """q ≈ √l, a multiple of COLUMNS, and the number of blocks of that length."""
    q = COLUMNS * max(1, round(np.sqrt(l) / COLUMNS))
    return q, (l + q - 1) // q


@part(fastmath=FUSED)
def _powers(x, count, step, width):
    """e^{x step i}, i < count; for each n a row of real parts and one of imaginary parts."""
    table = np.zeros((2 * x.size, width))
    for n in range(x.size):
        re, im, have = table[2 * n], table[2 * n + 1], 1
        re[0], im[0] = np.exp(x[n].real * 0), x[n].imag * 0
        while have < count:
            for first in range(have, min(4 * have, count), have):
                size, angle = np.exp(x[n].real * (first * step)), x[n].imag * (first * step)
                c, s = size * np.cos(angle), size * np.sin(angle)
                for i in range(min(have, count - first)):
                    re[first + i] = c * re[i] - s * im[i]
                    im[first + i] = c * im[i] + s * re[i]
            have *= 4
    return table


@part
def _decays(x, count, step, width):
    """The same of real x, a row for each n; separate, because ∞ · 0i would be NaN."""
    table = np.zeros((x.size, width))
    for n in range(x.size):
        row, have = table[n], 1
        row[0] = np.exp(x[n] * 0)
        while have < count:
            for first in range(have, min(4 * have, count), have):
                size = np.exp(x[n] * (first * step))
                for i in range(min(have, count - first)):
                    row[first + i] = size * row[i]
            have *= 4
    return table


@compiled([f"(f8[:], f8[:], {t}[:], {t}[:])" for t in ("f4", "f8")], "(n),(n),(l)->(l)")
def _real(v, x, length, k):
    """Σ_n v_n e^{x_n j} of real modes, ROWS blocks at a time."""
    q, count = divided(k.size)
    if k.size:
        heads, right = _decays(x, count, q, count), _decays(x, min(q, k.size), 1, q)
        left, sums = np.zeros((v.size, ROWS)), np.empty((ROWS, q))
        for first in range(0, count, ROWS):
            for n in range(v.size):
                for r in range(min(ROWS, count - first)):
                    left[n, r] = v[n] * heads[n, first + r]
            product(left, right, sums)
            for r in range(min(ROWS, count - first)):
                start = (first + r) * q
                for b in range(min(q, k.size - start)):
                    k[start + b] = sums[r, b]


@part(fastmath=FUSED)
def _head(v, heads, n, a):
    """v_n e^{x_n a q}."""
    re, im = heads[2 * n, a], heads[2 * n + 1, a]
    return v[n].real * re - v[n].imag * im, v[n].real * im + v[n].imag * re


@compiled([f"(c16[:], c16[:], {t}[:], {t}[:])" for t in ("f4", "f8")], "(n),(n),(l)->(l)")
def _real_part(v, x, length, k):
    """Re Σ_n v_n e^{x_n j}, ROWS blocks at a time."""
    q, count = divided(k.size)
    if k.size:
        heads, right = _powers(x, count, q, count), _powers(x, min(q, k.size), 1, q)
        left, sums = np.zeros((2 * v.size, ROWS)), np.empty((ROWS, q))
        for first in range(0, count, ROWS):
            for n in range(v.size):
                for r in range(min(ROWS, count - first)):
                    re, im = _head(v, heads, n, first + r)
                    left[2 * n, r], left[2 * n + 1, r] = re, -im
            product(left, right, sums)
            for r in range(min(ROWS, count - first)):
                start = (first + r) * q
                for b in range(min(q, k.size - start)):
                    k[start + b] = sums[r, b]


@compiled([f"(c16[:], c16[:], {t}[:], {t}[:])" for t in ("c8", "c16")], "(n),(n),(l)->(l)")
def _complex(v, x, length, k):
    """Σ_n v_n e^{x_n j}: real and imaginary part of ROWS / 2 blocks at a time."""
    q, count = divided(k.size)
    if k.size:
        heads, right = _powers(x, count, q, count), _powers(x, min(q, k.size), 1, q)
        left, sums = np.zeros((2 * v.size, ROWS)), np.empty((ROWS, q))
        for first in range(0, count, ROWS // 2):
            for n in range(v.size):
                for r in range(min(ROWS // 2, count - first)):
                    re, im = _head(v, heads, n, first + r)
                    left[2 * n, 2 * r], left[2 * n + 1, 2 * r] = re, -im
                    left[2 * n, 2 * r + 1], left[2 * n + 1, 2 * r + 1] = im, re
            product(left, right, sums)
            for r in range(min(ROWS // 2, count - first)):
                start = (first + r) * q
                for b in range(min(q, k.size - start)):
                    k[start + b] = complex(sums[2 * r, b], sums[2 * r + 1, b])


@part(fastmath=REORDERED)
def _closed(sums, table, n, size):
    """Σ_b E_b U_b and Σ_b E_b (V_b + b U_b), E_b = e^{x_n b}; sums are the parts of U and V."""
    total_re, total_im, moment_re, moment_im = 0.0, 0.0, 0.0, 0.0
    for b in range(size):
        re, im = table[2 * n, b], table[2 * n + 1, b]
        total_re += re * sums[0, b] - im * sums[1, b]
        total_im += re * sums[1, b] + im * sums[0, b]
        v_re, v_im = sums[2, b], sums[3, b]
        if b > 0:  # 0 · ∞
            v_re, v_im = v_re + b * sums[0, b], v_im + b * sums[1, b]
        moment_re += re * v_re - im * v_im
        moment_im += re * v_im + im * v_re
    return complex(total_re, total_im), complex(moment_re, moment_im)


@part
def _moments(d, x, first, second):
    """Σ_j d_j e^{x_n j} and Σ_j j d_j e^{x_n j} for real d: U_b = Σ_a e^{x a q} d_{aq+b}."""
    for n in range(x.size):
        first[n], second[n] = 0, 0
    if d.size == 0:
        return
    q, count = divided(d.size)
    heads, table = _powers(x, count, q, count), _powers(x, min(q, d.size), 1, q)
    right, left, sums = np.zeros((count, q)), np.empty((count, ROWS)), np.empty((ROWS, q))
    for a in range(count):
        for b in range(min(q, d.size - a * q)):
            right[a, b] = d[a * q + b]
    for n in range(x.size):
        for a in range(count):
            re, im = heads[2 * n, a], heads[2 * n + 1, a]
            left[a, 0], left[a, 1], left[a, 2], left[a, 3] = re, im, a * q * re, a * q * im
        product(left, right, sums)
        first[n], second[n] = _closed(sums, table, n, min(q, d.size))


@compiled([f"({t}[:], c16[:], c16[:], c16[:])" for t in ("f4", "f8")], "(l),(n)->(n),(n)")
def _back_of_real(dk, x, first, second):
    """Σ_j dk_j E_nj* and Σ_j j dk_j E_nj* of a real cotangent."""
    _moments(dk, x, first, second)
    for n in range(x.size):
        first[n], second[n] = np.conj(first[n]), np.conj(second[n])


@compiled([f"({t}[:], c16[:], c16[:], c16[:])" for t in ("c8", "c16")], "(l),(n)->(n),(n)")
def _back(dk, x, first, second):
    """The same of a complex cotangent, real and imaginary part one after the other."""
    sums, moments = np.empty((2, x.size), x.dtype), np.empty((2, x.size), x.dtype)
    _moments(dk.real, x, sums[0], moments[0])
    _moments(dk.imag, x, sums[1], moments[1])
    for n in range(x.size):
        first[n] = np.conj(sums[0, n]) + 1j * np.conj(sums[1, n])
        second[n] = np.conj(moments[0, n]) + 1j * np.conj(moments[1, n])


@compiled([f"({t}[:], f8[:], f8[:], f8[:])" for t in ("f4", "f8")], "(l),(n)->(n),(n)")
def _back_real(dk, x, first, second):
    """The same for real modes."""
    for n in range(x.size):
        first[n], second[n] = 0, 0
    q, count = divided(dk.size)
    if dk.size:
        heads, table = _decays(x, count, q, count), _decays(x, min(q, dk.size), 1, q)
        right, left, sums = np.zeros((count, q)), np.zeros((count, ROWS)), np.empty((ROWS, q))
        for j in range(dk.size):
            right[j // q, j % q] = dk[j]
        for n in range(x.size):
            for a in range(count):
                left[a, 0], left[a, 1] = heads[n, a], a * q * heads[n, a]
            product(left, right, sums)
            for b in range(min(q, dk.size)):
                first[n] += table[n, b] * sums[0, b]
                second[n] += table[n, b] * (sums[1, b] + (b * sums[0, b] if b else 0))  # 0 · ∞


def _wide(v, x):
    """v and x in double precision, both complex if one is."""
    wide = np.result_type(v, x, np.float64)
    return v.astype(wide), x.astype(wide)


def moments(dk, x):
    """Σ_j dk_j E_nj* and Σ_j j dk_j E_nj*, E_nj = e^{x_n j}, in double precision."""
    x = x.astype(np.result_type(x, np.float64))
    if dk.dtype.kind == "c":
        return _back(dk, x)
    return (_back_of_real if x.dtype.kind == "c" else _back_real)(dk, x)


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel(v, x, *, l):
    kind = np.result_type(v, x)
    return (_complex if kind.kind == "c" else _real)(*_wide(v, x), np.empty(l, kind))


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel_vjp(dk, v, x, *, l):
    return _gradients(dk, v, x, 1)


def rounded(gradients, kind):
    """The gradients in the precision of `kind`, each real or complex as it is."""
    real = np.finfo(kind).dtype
    complex_ = np.result_type(real, np.complex64)
    return tuple(g.astype(complex_ if g.dtype.kind == "c" else real) for g in gradients)


def _gradients(dk, v, x, factor):
    """dv and dx for the cotangent factor · dk, rounded after the sum over broadcast axes."""
    first, second = moments(dk, x)
    wide = unbroadcast_each((factor * first, factor * v.conj() * second), (v, x))
    return rounded(wide, np.result_type(dk, v, x))


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real(v, x, *, l):
    """Does not sum imaginary parts."""
    kind = np.result_type(v, x)
    v, x = _wide(v, x)
    length = np.empty(l, np.finfo(kind).dtype)
    return (_real_part if kind.kind == "c" else _real)(2 * v, x, length)


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real_vjp(dk, v, x, *, l):
    return _gradients(dk.real, v, x, 2)
