"""Numba mirror of refssm.resolvent_at_roots: a short transform of products in registers.

With l = qm, q a power of two up to POINTS, and j = r + m i:

    1/(1 − aω_j) = Σ_{b<q} (aω_j)^b / (1 − (aω_r)^q)
    k_j = Σ_b e^(−2πib/q·i) ω_r^b Σ_n a_n^b v_n/(1 − (a_nω_r)^q)

The sum over n is a product of matrices, the one over b a transform of q points, and only one
division in q remains. Where some |1 − (aω)^q|² leaves the safe range, as at a pole, and for odd l,
the sum over n is computed at every node: v/(1 − aω) = z v/(z − a) with z = ω*, a Cauchy kernel. All
in double precision, rounded once.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# (a gufunc allocates its outputs; pyright does not know that)

from functools import lru_cache

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import apart
from refssm.jit._vectors.tables import FUSED, crossed, zeros
from refssm.jit.cauchy.division import quotient
from refssm.jit.cauchy.kernel import (
    BLOCK,
    LARGEST,
    SMALLEST,
    complex_sums,
    moments,
    split,
)
from refssm.jit.vandermonde import rounded

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
    m, (heads, power) = k.size // q, _powers(a, q)
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
