"""Numba mirrors of refssm.cauchy: blocks of nodes in registers and in the L1 cache.

Numba's complex division raises on zero and branches for every term. Here each term is v (d*/|d|²),
d = z − w, without a branch. In double precision two poles share one division: 1/p = q/(pq). A node
where some |d|² leaves the safe range is computed again with Smith's division, in a gradient the
whole channel. Real sums and gradients are in double precision, rounded once. Complex sums in single
precision have registers of nodes, and poles in the inner loop:

    v/(z − w) = v a r − i v b r,   a + ib = z − w,   r = 1/(a² + b²)

A register has 16 nodes, and four of them make one pass over the poles. Sums of at most TERMS poles
are added to each other, so the error does not grow with the number of poles. A node where some r is
above LARGEST_SINGLE is computed again by Smith's division in double precision, and so is a block
with numbers beyond HUGE_SINGLE.

`resolvent_at_roots` is a short transform of products in registers. With l = qm, q a power of two up
to POINTS, and j = r + m i:

    1/(1 − aω_j) = Σ_{b<q} (aω_j)^b / (1 − (aω_r)^q)
    k_j = Σ_b e^(−2πib/q·i) ω_r^b Σ_n a_n^b v_n/(1 − (a_nω_r)^q)

The sum over n is a product of matrices, the one over b a transform of q points, and only one
division in q remains. Where some |1 − (aω)^q|² leaves the safe range, as at a pole, and for odd l,
the sum over n is computed at every node: v/(1 − aω) = z v/(z − a) with z = ω*, a Cauchy kernel. All
in double precision, rounded once.
"""

from functools import lru_cache
from inspect import unwrap
from typing import Any

import numpy as np

from refssm._numerics import division
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.pairs import folded, paired
from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import CAUCHY_KERNEL, CAUCHY_KERNEL_PAIRS, RESOLVENT_AT_ROOTS
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart, larger, splat, times_plus
from refssm.jit._vectors.scratch import load, number, put, release, scratch, store, width_of
from refssm.jit._vectors.tables import FUSED, REORDERED, crossed, zeros
from refssm.jit.vandermonde import rounded

quotient: Any = part(division.quotient)


@part
def eliminate(M, x):
    """x becomes M⁻¹ x, by elimination with partial pivoting; M is overwritten."""
    n = x.size
    for i in range(n):
        p = i
        for j in range(i + 1, n):
            if not abs(M[p, i]) >= abs(M[j, i]):  # a NaN is a pivot, as in numpy.argmax
                p = j
        for j in range(i, n):
            M[i, j], M[p, j] = M[p, j], M[i, j]
        x[i], x[p] = x[p], x[i]
        for j in range(i + 1, n):
            factor = quotient(M[j, i], M[i, i])
            for k in range(i + 1, n):
                M[j, k] -= factor * M[i, k]
            x[j] -= factor * x[i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= M[i, k] * x[k]
        x[i] = quotient(x[i], M[i, i])


@part
def carefully(v, w, z):
    """The sum at one node by Smith's division."""
    total = 0j
    for n in range(v.size):
        total += quotient(np.complex128(v[n]), z - np.complex128(w[n]))
    return total


TERMS = 64  # poles
NODES = 4  # registers of nodes
RE, IM, SUM_RE, SUM_IM, WORST, ROWS = range(0, 6 * NODES, NODES)
LARGEST_SINGLE = np.float32(1e30)  # of 1/|d|²
HUGE_SINGLE = np.float32(1e18)  # of real and imaginary parts


@part
def _largest(x):
    """The largest real or imaginary part."""
    found = np.float32(0)
    for n in range(x.size):
        found = max(found, max(abs(x[n].real), abs(x[n].imag)))
    return found


@part
def _gathered(z, start, rows):
    """A block of z as registers; behind the last node, that one again. Its largest part."""
    apart()
    width, found = width_of(rows), np.float32(0)
    for i in range(NODES * width):
        z_i = z[min(start + i, z.size - 1)]
        put(rows, RE * width + i, z_i.real)
        put(rows, IM * width + i, z_i.imag)
        found = max(found, max(abs(z_i.real), abs(z_i.imag)))
    return found


@part
def _added(v, w, first, last, rows, j):
    """Add v/(z − w) for the poles from `first` to `last` to the sums of one register of nodes."""
    zero, one = splat(np.float32(0)), splat(np.float32(1))
    re, im = zero, zero
    z_re, z_im, worst = load(rows, RE + j), load(rows, IM + j), load(rows, WORST + j)
    for n in range(first, last):
        a, b = z_re - w[n].real, z_im - w[n].imag
        r = one / times_plus(a, a, b * b)
        worst = larger(r, worst)
        a, b = a * r, b * r  # first: v a may underflow where v/d does not
        re = times_plus(b, v[n].imag, times_plus(a, v[n].real, re))
        im = times_plus(b, -v[n].real, times_plus(a, v[n].imag, im))
    store(rows, SUM_RE + j, load(rows, SUM_RE + j) + re)
    store(rows, SUM_IM + j, load(rows, SUM_IM + j) + im)
    store(rows, WORST + j, worst)


@compiled(["(c8[:], c8[:], c8[:], c8[:])"], "(n),(n),(l)->(l)")
def cauchy_single(v, w, z, k):
    """Σ_n v_n / (z_l − w_n) in single precision."""
    rows = scratch(ROWS, np.empty(1, np.float32))
    width, poles, zero = width_of(rows), _largest(w), splat(np.float32(0))
    for start in range(0, z.size, NODES * width):
        safe = max(poles, _gathered(z, start, rows)) <= HUGE_SINGLE
        for j in range(SUM_RE, ROWS):
            store(rows, j, zero)
        for first in range(0, v.size, TERMS):
            for j in range(NODES):
                _added(v, w, first, min(first + TERMS, v.size), rows, j)
        for i in range(min(NODES * width, z.size - start)):
            total = complex(number(rows, SUM_RE * width + i), number(rows, SUM_IM * width + i))
            if not (safe and number(rows, WORST * width + i) <= LARGEST_SINGLE):
                total = carefully(v, w, np.complex128(z[start + i]))
            k[start + i] = total
    release(rows)


BLOCK = 512  # nodes
SMALLEST, LARGEST = 1e-140, 1e140  # of |d|²: outside, its square loses digits
HUGE = 1e70  # from there on, the product of two |d|² may overflow


@part(fastmath=FUSED)
def _two_poles(v, w, x, y, z, size, sums, worst):
    """Add v/(z − w) + x/(z − y) at a block of nodes; `worst` becomes the largest 1/|d|⁴."""
    apart()
    z_re, z_im, re, im = z[0], z[1], sums[0], sums[1]
    for l in range(size):
        a, b, c, d = z_re[l] - w.real, z_im[l] - w.imag, z_re[l] - y.real, z_im[l] - y.imag
        p, q = a * a + b * b, c * c + d * d
        both = 1 / (p * q)
        worst[l] = max(worst[l], both)
        p, q = q * both, p * both
        a, b, c, d = a * p, b * p, c * q, d * q  # first: v d* may underflow where v/d does not
        re[l] = re[l] + v.real * a + v.imag * b + x.real * c + x.imag * d
        im[l] = im[l] + v.imag * a - v.real * b + x.imag * c - x.real * d


@part
def _safe(w, parts, size):
    """The largest 1/(pq) of a block for which neither p nor q, of the form |z − w|², has lost
    digits: both are at most 8 M², M the largest part of a number, so the other is above 1e-290. 0,
    if they may overflow."""
    largest = 1.0
    for n in range(w.size):
        largest = max(largest, max(abs(np.float64(w[n].real)), abs(np.float64(w[n].imag))))
    for b in range(size):
        largest = max(largest, max(abs(parts[0, b]), abs(parts[1, b])))
    return 1e290 / (8 * largest * largest) if largest < HUGE else 0.0


@part
def split(z, start, parts):
    """Real and imaginary parts of a block of z; the number of its nodes."""
    size = min(BLOCK, z.size - start)
    for b in range(size):
        parts[0, b], parts[1, b] = z[start + b].real, z[start + b].imag
    return size


@part
def complex_sums(v, w, z, k, turned):
    """Σ_n v_n / (z_l − w_n), times z_l if turned."""
    parts, sums, worst = np.empty((2, BLOCK)), np.empty((2, BLOCK)), np.empty(BLOCK)
    for start in range(0, z.size, BLOCK):
        size = split(z, start, parts)
        safe = _safe(w, parts, size)
        sums[:], worst[:] = 0, 0
        for n in range(0, v.size, 2):
            other = min(n + 1, v.size - 1)
            x = np.complex128(v[other]) if other > n else 0j
            v_n, w_n, y = np.complex128(v[n]), np.complex128(w[n]), np.complex128(w[other])
            _two_poles(v_n, w_n, x, y, parts, size, sums, worst)
        for b in range(size):
            total, z_l = complex(sums[0, b], sums[1, b]), np.complex128(z[start + b])
            if not worst[b] < safe:
                total = carefully(v, w, z_l)
            k[start + b] = z_l * total if turned else total


@compiled(["(c16[:], c16[:], c16[:], c16[:])"], "(n),(n),(l)->(l)")
def _cauchy_complex(v, w, z, k):
    complex_sums(v, w, z, k, False)


@compiled([f"({t}[:], {t}[:], {t}[:], {t}[:])" for t in ("f4", "f8")], "(n),(n),(l)->(l)")
def _cauchy_real(v, w, z, k):
    """Σ_n v_n / (z_l − w_n) of real arguments."""
    nodes, sums = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(0, z.size, BLOCK):
        size = min(BLOCK, z.size - start)
        for b in range(size):
            nodes[b] = z[start + b]
        sums[:] = 0
        for n in range(v.size):
            v_n, w_n = np.float64(v[n]), np.float64(w[n])
            for b in range(size):
                sums[b] += v_n / (nodes[b] - w_n)
        for b in range(size):
            k[start + b] = sums[b]


@part(fastmath=REORDERED)
def moments(d, z, size, v, w, sums):
    """Σ_l d R and Σ_l d R², R = 1/(z − w), and True if some |z − w|² may lose digits; adds v R² to
    the sums of each node unless these are None."""
    apart()
    d_re, d_im, z_re, z_im = d[0], d[1], z[0], z[1]
    first_re, first_im, second_re, second_im, outside = 0.0, 0.0, 0.0, 0.0, 0
    for l in range(size):
        a, b = z_re[l] - w.real, z_im[l] - w.imag
        square = a * a + b * b
        outside += (square < SMALLEST) | (square > LARGEST)
        a, b = a / square, -b / square
        t_re, t_im = d_re[l] * a - d_im[l] * b, d_re[l] * b + d_im[l] * a
        first_re += t_re
        first_im += t_im
        second_re += t_re * a - t_im * b
        second_im += t_re * b + t_im * a
        if sums is not None:
            a, b = a * a - b * b, 2 * a * b
            sums[0, l] += v.real * a - v.imag * b
            sums[1, l] += v.real * b + v.imag * a
    return complex(first_re, first_im), complex(second_re, second_im), outside > 0


@compiled(
    [f"({t}[:], {t}[:], {t}[:], {t}[:], c16[:], c16[:], {t}[:])" for t in ("c8", "c16")],
    "(l),(n),(n),(l)->(n),(n),(l)",
)
def _cauchy_back(dk, v, w, z, dv, dw, dz):
    """Σ_l dk R*, Σ_l dk (v R²)*, −dk Σ_n (v R²)*, with R = 1/(z − w)."""
    nodes, d, sums = np.empty((2, BLOCK)), np.empty((2, BLOCK)), np.empty((2, BLOCK))
    far = False
    for n in range(v.size):  # assigning slices takes a second to compile
        dv[n], dw[n] = 0, 0
    for start in range(0, z.size, BLOCK):
        size = split(z, start, nodes)
        split(dk, start, d)
        for b in range(size):
            d[1, b] *= -1
            sums[0, b], sums[1, b] = 0, 0
        for n in range(v.size):
            v_n, w_n = np.complex128(v[n]), np.complex128(w[n])
            first, second, outside = moments(d, nodes, size, v_n, w_n, sums)
            dv[n] += first
            dw[n] += second
            far |= outside
        for b in range(size):
            dz[start + b] = complex(-d[0, b], d[1, b]) * complex(sums[0, b], -sums[1, b])
    for n in range(v.size):
        dv[n], dw[n] = np.conj(dv[n]), np.conj(np.complex128(v[n]) * dw[n])
    if far:
        _back_carefully(dk, v, w, z, dv, dw, dz)


@part
def _back_carefully(dk, v, w, z, dv, dw, dz):
    """The same by Smith's division."""
    sums = np.zeros(z.size, np.complex128)
    for n in range(v.size):
        dv[n], dw[n] = 0, 0
        for l in range(z.size):
            R = quotient(1.0 + 0.0j, np.complex128(z[l]) - np.complex128(w[n]))
            vR2 = np.complex128(v[n]) * R * R
            dv[n] += np.complex128(dk[l]) * np.conj(R)
            dw[n] += np.complex128(dk[l]) * np.conj(vR2)
            sums[l] += vR2
    for l in range(z.size):
        dz[l] = -np.complex128(dk[l]) * np.conj(sums[l])


@mirror(CAUCHY_KERNEL)
def cauchy_kernel(v, w, z):
    kind = np.result_type(v, w, z)
    if kind == np.complex64:
        return cauchy_single(v, w, z)
    return (_cauchy_complex if kind.kind == "c" else _cauchy_real)(v, w, z)


@mirror(CAUCHY_KERNEL)
def cauchy_kernel_vjp(dk, v, w, z):
    """Real arguments are computed as complex."""
    gradients = unbroadcast_each(_cauchy_back(dk, v, w, z), (v, w, z))
    return rounded(gradients, np.result_type(dk, v, w, z))


_whole, _whole_vjp = unwrap(cauchy_kernel), unwrap(cauchy_kernel_vjp)  # arguments are checked


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs(v, w, z):
    return _whole(paired(v), paired(w), z)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs_vjp(dk, v, w, z):
    dv, dw, dz = _whole_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz


POINTS, WIDTH = 16, 64  # of the short transform; residues r side by side


@compiled(
    [f"(c16[:], c16[:], c16[:], {t}[:], {t}[:])" for t in ("c8", "c16")], "(n),(n),(l),(l)->(l)"
)
def _direct(v, a, z, length, k):
    """Σ_n v_n z_l/(z_l − a_n)."""
    complex_sums(v, a, z, k, True)


@part
def _powers(a, q):
    """A table of a_n^b, b < q, and a^q as a table of one row."""
    apart()
    found, last = zeros(a.size, q), zeros(1, a.size)
    for n in range(a.size):
        power = 1 + 0j
        for b in range(q):
            found[2 * n, b], found[2 * n + 1, b] = power.real, power.imag
            power *= a[n]
        last[0, n], last[1, n] = power.real, power.imag
    return found, last


@part(fastmath=FUSED)
def _quotients(v, power, turn, R):
    """v_n/(1 − a^q ω^q) at WIDTH residues; the number of those for which |d|² is not safe."""
    apart()
    far = 0
    for n in range(v.size):
        x, y, re, im = v[n].real, v[n].imag, power[0, n], power[1, n]
        for r in range(WIDTH):
            a = 1 - (re * turn[0, r] - im * turn[1, r])
            b = re * turn[1, r] + im * turn[0, r]  # minus the imaginary part
            size = a * a + b * b
            far += not (size > SMALLEST and size < LARGEST)
            a, b = a / size, b / size
            R[2 * n, r], R[2 * n + 1, r] = x * a - y * b, x * b + y * a
    return far


@part(fastmath=FUSED)
def _transformed(S, q, roots, start):
    """The short transform over the q rows of a table, each times ω_r^b; row i of the result is the
    one at the number whose binary digits are those of i backwards."""
    apart()
    l, last = roots.size, roots.size // q - 1
    for r in range(WIDTH):
        for b in range(1, q):
            turn = roots[b * min(start + r, last)]
            re, im = S[2 * b, r], S[2 * b + 1, r]
            S[2 * b, r] = re * turn.real - im * turn.imag
            S[2 * b + 1, r] = re * turn.imag + im * turn.real
    half = q // 2
    while half:
        for first in range(0, q, 2 * half):
            for b in range(first, first + half):
                turn, i, k = roots[(b - first) * (l // (2 * half))], 2 * b, 2 * (b + half)
                for r in range(WIDTH):
                    re, im = S[i, r] - S[k, r], S[i + 1, r] - S[k + 1, r]
                    S[i, r], S[i + 1, r] = S[i, r] + S[k, r], S[i + 1, r] + S[k + 1, r]
                    S[k, r] = re * turn.real - im * turn.imag
                    S[k + 1, r] = re * turn.imag + im * turn.real
        half //= 2


@compiled(
    [f"(c16[:], c16[:], c16[:], {t}[:], {t}[:], b1[:])" for t in ("c8", "c16")],
    "(n),(n),(l),(l)->(l),()",
)
def _blocked(v, a, roots, length, k, far):
    """k where l is even; `far` if a divisor is not in the safe range."""
    q = 1
    while q < POINTS and k.size % (2 * q) == 0:
        q *= 2
    m, (heads, power) = k.size // q, _powers(a, q)  # pyright: ignore[reportGeneralTypeIssues]
    R, turn = np.zeros((2 * a.size, WIDTH)), np.zeros((2, WIDTH))
    far[0] = False
    for start in range(0, m, WIDTH):
        for r in range(WIDTH):
            z = roots[q * min(start + r, m - 1)]
            turn[0, r], turn[1, r] = z.real, z.imag
        far[0] |= _quotients(v, power, turn, R) > 0
        S = crossed(heads, q, R)
        _transformed(S, q, roots, start)
        for b in range(q):
            i, digit = 0, 1
            while digit < q:
                i, digit = 2 * i + ((b & digit) > 0), 2 * digit
            for r in range(min(WIDTH, m - start)):
                k[m * i + start + r] = complex(S[2 * b, r], S[2 * b + 1, r])


@compiled(
    [f"({t}[:], c16[:], c16[:], c16[:], c16[:])" for t in ("c8", "c16")],
    "(l),(l),(n)->(n),(n)",
)
def _resolvent_back(dk, z, a, first, second):
    """Σ_l dk (z R)* and Σ_l dk (z R²)* with R = 1/(z − a)."""
    nodes, d = np.empty((2, BLOCK)), np.empty((2, BLOCK))
    far = False
    for n in range(a.size):  # assigning slices takes a second to compile
        first[n], second[n] = 0, 0
    for start in range(0, z.size, BLOCK):
        size = split(z, start, nodes)
        for b in range(size):
            turned = np.conj(np.complex128(dk[start + b])) * z[start + b]
            d[0, b], d[1, b] = turned.real, turned.imag
        for n in range(a.size):
            one, two, outside = moments(d, nodes, size, 0j, a[n], None)
            first[n] += one
            second[n] += two
            far |= outside
    for n in range(a.size):
        first[n], second[n] = np.conj(first[n]), np.conj(second[n])
    if far:
        for n in range(a.size):
            first[n], second[n] = 0, 0
            for l in range(z.size):
                R = quotient(1.0 + 0.0j, z[l] - a[n])
                first[n] += np.complex128(dk[l]) * np.conj(z[l] * R)
                second[n] += np.complex128(dk[l]) * np.conj(z[l] * R * R)


@lru_cache(maxsize=8)
def _circle(l):
    """The conjugates of the roots of unity, in double precision."""
    z = roots_of_unity(l, np.float64).conj()
    z.flags.writeable = False
    return z


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots(v, a, *, l):
    """Computed in double precision and rounded once."""
    kind, l = np.result_type(v, a, np.complex64), int(l)
    v, a = np.broadcast_arrays(v.astype(np.complex128), a.astype(np.complex128))
    if l % 2:
        return _direct(v, a, _circle(l), np.empty(l, kind))
    k, far = _blocked(v, a, _circle(l).conj(), np.empty(l, kind))
    if far.any():
        k[far] = _direct(v[far], a[far], _circle(l), np.empty(l, kind))
    return k


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots_vjp(dk, v, a, *, l):
    """Real arguments are computed as complex."""
    complex_dk = dk.astype(np.result_type(dk, np.complex64), copy=False)
    first, second = _resolvent_back(complex_dk, _circle(int(l)), a.astype(np.complex128))
    gradients = unbroadcast_each((first, v.conj() * second), (v, a))
    return rounded(gradients, np.result_type(dk, v, a))
