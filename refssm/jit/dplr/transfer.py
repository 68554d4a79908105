"""The transfer function of a DPLR system at its nodes: blocks of nodes across SIMD lanes.

    K̂(z) = 2/s (σ₀₀ − σ₀ᵣ (I_r + σᵣᵣ)⁻¹ σᵣ₀),   σ = Σ_n [C̃, Q*]_n [B, P]_nᵀ / (iτ − w_n)

with s = 1 + z and iτ = 2/dt (1 − z)/(1 + z). On the circle z = e^(−iθ), τ = 2/dt tan θ/2 is real
and 2/s = 1 + i tan θ/2. So the real part of iτ − w is the same at all nodes, a reciprocal costs
three products and a division, two poles share the division, and all sums are one real matrix
product. At z = −1, where τ is infinite, K̂ = dt/2 Σ_n C̃_n B_n. No array has all nodes and modes.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from functools import lru_cache

import numpy as np
from scipy.fft import ifft

from refssm._numerics.roots import turned
from refssm.jit._compiling.gufunc import compiled
from refssm.jit._compiling.parts import part
from refssm.jit._compiling.threads import threads
from refssm.jit._vectors.tiles import ROWS, product
from refssm.jit.dplr.nodes import circle, eliminated

BLOCK = 64  # nodes
PAIRS = ROWS // 2  # sums in a product: real and imaginary part are a row each
ORDINARY = 1e-70, 1e70  # within, no product of two squares under- or overflows


@lru_cache(maxsize=8)
def tangents(l):
    """tan θ/2 and 2/(1 + z) = 1 + i tan θ/2 at the nodes z = e^(−iθ); 0 in place of ∞."""
    c, s = turned(np.arange(l), 2 * l, np.float64)
    tangent = np.divide(s, c, out=np.zeros(l), where=c != 0)
    tables = tangent, np.where(c != 0, 1 + 1j * tangent, 0)
    for table in tables:
        table.flags.writeable = False
    return tables


def closest(w, dt, l):
    """The 17 nodes closest to the pole of each mode, from which |D| grows; all nodes of a short
    circle. Also D there, which is 0 if iτ = w_n: (…, n, 17)."""
    h = dt[..., None]
    angle = np.angle(2 + h * w) - np.angle(2 - h * w)
    middle = np.nan_to_num(np.rint(angle * (l / (2 * np.pi)))).astype(np.int64)
    nodes = (middle[..., None] + np.arange(-8, 9)) % l
    below, above = circle(l)
    D = 2 * below[nodes] / h[..., None] - above[nodes] * w[..., None]
    exact = 2 / h[..., None] * tangents(l)[0][nodes] == w.imag[..., None]
    met = exact & (w.real == 0)[..., None] & (above[nodes] != 0)
    return nodes, np.where(met, 0, D)


def ordinary(w, dt):
    """True if all moduli are far from under- and overflow, so that `transfer` loses no digits."""
    low, high = ORDINARY
    strange = (np.abs(w.real) < low) & (w.real != 0) | (np.abs(w) > high)
    return not (strange.any() or ((dt < low) | (dt > high)).any())


@part
def weights(w, left, right):
    """For each product of ROWS rows the factors of 1/|d|² and of (τ − Im w)/|d|², d = iτ − w:
    W/d = W (−Re w − i (τ − Im w))/|d|², W = left_in right_jn."""
    count, n_modes = left.shape[0] * right.shape[0], w.size
    factors = np.zeros(((count + PAIRS - 1) // PAIRS, 2 * n_modes, ROWS))
    for pair in range(count):
        group, row = factors[pair // PAIRS], 2 * (pair % PAIRS)
        for n in range(n_modes):
            W = left[pair // right.shape[0], n] * right[pair % right.shape[0], n]
            group[2 * n, row], group[2 * n, row + 1] = -W.real * w[n].real, -W.imag * w[n].real
            group[2 * n + 1, row], group[2 * n + 1, row + 1] = W.imag, -W.real
    return factors


@part(fastmath={"contract"})
def _two_rows(v, w, tau, R):
    """1/|d|² and (τ − Im w)/|d|² of two modes at a block of nodes; they share one division."""
    x, y = v.real * v.real, w.real * w.real
    for b in range(tau.size):
        p, q = tau[b] - v.imag, tau[b] - w.imag
        c, d = x + p * p, y + q * q
        both = 1 / (c * d)
        c, d = d * both, c * both
        R[0, b], R[1, b], R[2, b], R[3, b] = c, p * c, d, q * d


@part
def reciprocals(w, tau, R):
    """`_two_rows` of all modes; R has rows for an even number of modes."""
    for n in range(0, w.size, 2):
        _two_rows(w[n], w[min(n + 1, w.size - 1)], tau, R[2 * n : 2 * n + 4])


@part(fastmath={"contract"})
def _rank_one(rows, count):
    """σ₀₀ − σ₀₁ σ₁₀/(1 + σ₁₁) in place of σ₀₀, across SIMD lanes; the number of nodes for which
    the division may lose digits: nothing is changed if there are any."""
    outside = 0
    for b in range(count):
        size = (1 + rows[6, b]) ** 2 + rows[7, b] ** 2
        outside += not (size > ORDINARY[0] and size < ORDINARY[1])
    if not outside:
        for b in range(count):
            re, im = 1 + rows[6, b], -rows[7, b]
            size = re * re + im * im
            re, im = re / size, im / size
            x, y = rows[4, b] * re - rows[5, b] * im, rows[4, b] * im + rows[5, b] * re
            rows[0, b] = rows[0, b] - rows[2, b] * x + rows[3, b] * y
            rows[1, b] = rows[1, b] - rows[2, b] * y - rows[3, b] * x
    return outside


@part
def _any_rank(rows, b, S, M, x):
    """σ₀₀ − σ₀ᵣ (I_r + σᵣᵣ)⁻¹ σᵣ₀ of node b in place of σ₀₀."""
    size = S.shape[0]
    for pair in range(size * size):
        S[pair // size, pair % size] = complex(rows[2 * pair, b], rows[2 * pair + 1, b])
    for q in range(size - 1):
        x[q] = S[q + 1, 0]
    eliminated(1 + 0j, S, M, x)
    total = S[0, 0]
    for q in range(size - 1):
        total -= S[0, q + 1] * x[q]
    rows[0, b], rows[1, b] = total.real, total.imag


@compiled(
    ["(f8[:], c16[:], f8[:], c16[:], c16[:,:], c16[:,:], c16[:])"],
    "(l),(l),(),(n),(i,n),(i,n)->(l)",
)
def transfer(tangent, turn, dt, w, left, right, spectrum):
    """K̂ with left = [C̃, Q*], right = [B, P], turn = 2/s."""
    size, n = left.shape[0], w.size
    factors, R = weights(w, left, right), np.zeros((2 * (n + n % 2), BLOCK))
    tau, rows = np.zeros(BLOCK), np.empty((factors.shape[0] * ROWS, BLOCK))
    S, M = np.empty((size, size), np.complex128), np.empty((size - 1, size - 1), np.complex128)
    x, at_infinity = np.empty(size - 1, np.complex128), 0j
    for k in range(n):
        at_infinity += left[0, k] * right[0, k]
    for start in range(0, tangent.size, BLOCK):
        count = min(BLOCK, tangent.size - start)
        for b in range(count):
            tau[b] = 2 / dt[0] * tangent[start + b]
        reciprocals(w, tau, R)
        for group in range(factors.shape[0]):
            product(factors[group], R[: 2 * n], rows[ROWS * group : ROWS * group + ROWS])
        if size > 2 or (size == 2 and _rank_one(rows, count)):
            for b in range(count):
                _any_rank(rows, b, S, M, x)
        for b in range(count):
            spectrum[start + b] = turn[start + b] * complex(rows[0, b], rows[1, b])
            if turn[start + b] == 0:
                spectrum[start + b] = dt[0] / 2 * at_infinity


def transformed(spectrum, dtype):
    """K from K̂, which is overwritten; real if the arguments are."""
    K = ifft(spectrum, overwrite_x=True, workers=threads())
    return (K if dtype.kind == "c" else K.real).astype(dtype)
