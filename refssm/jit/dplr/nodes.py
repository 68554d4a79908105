"""Numba mirrors of refssm.dplr.aliased and of its pairs: one pass over the nodes, and back.

Forward, blocks of nodes lie across SIMD lanes:

    K̂(z) = 2/s (σ₀₀ − σ₀ᵣ (I_r + σᵣᵣ)⁻¹ σᵣ₀),   σ = Σ_n [C̃, Q*]_n [B, P]_nᵀ / (iτ − w_n)

with s = 1 + z and iτ = 2/dt (1 − z)/(1 + z). On the circle z = e^(−iθ), τ = 2/dt tan θ/2 is real
and 2/s = 1 + i tan θ/2. So the real part of iτ − w is the same at all nodes, a reciprocal costs
three products and a division, two poles share the division, and all sums are one real matrix
product. At z = −1, where τ is infinite, K̂ = dt/2 Σ_n C̃_n B_n. No array has all nodes and modes.

Backward, all Cauchy sums of a node are one pass, with the modes in the inner loop:

    K̂(z) = 2 (S₀₀ − s S₀ᵣ (I_r + s Sᵣᵣ)⁻¹ Sᵣ₀),   S = Σ_n [C̃, Q*]_n [B, P]_nᵀ / D_n,   D = g − s w

with s = 1 + z and g = 2 (1 − z)/dt. No array has both nodes and modes.

K̂ at the conjugate of a node is the conjugate of K̂ for a system of conjugate pairs, which needs
⌊l/2⌋ + 1 nodes. Backwards, too: what a node adds to the gradient of the stored half, its conjugate
adds to the conjugate of the other half's.

Complex vectors are two rows, real and imaginary parts, for SIMD loads: Numba's complex arrays
interleave the two, and its compiler then does not vectorize sums. Loops are explicit, because one
array expression takes a second or more to compile.
"""

from functools import lru_cache

import numpy as np
from numpy.fft import fft
from scipy.fft import ifft, irfft, rfft

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.roots import turned
from refssm.dplr import DPLR_KERNEL_ALIASED, DPLR_KERNEL_ALIASED_REAL
from refssm.dplr.pairs import both_halves, of_stored
from refssm.dplr.system import around_the_circle, empty
from refssm.jit._compiling.gufunc import compiled, gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._compiling.threads import threads
from refssm.jit._vectors.tables import FUSED, REORDERED, ROWS, product
from refssm.jit.cauchy import eliminate, quotient


@part
def pair(x):
    """(n) -> (2, n), contiguous."""
    found = np.empty((2, x.size))
    for n in range(x.size):
        found[0, n], found[1, n] = x[n].real, x[n].imag
    return found


@part
def pairs(X):
    """`pair` of each row: (r, n) -> (r, 2, n)."""
    found = np.empty((X.shape[0], 2, X.shape[1]))
    for q in range(X.shape[0]):
        for n in range(X.shape[1]):
            found[q, 0, n], found[q, 1, n] = X[q, n].real, X[q, n].imag
    return found


@part
def put(x, X):
    """Write the pair X to x as complex numbers."""
    for n in range(x.size):
        x[n] = complex(X[0, n], X[1, n])


@part
def copied(x, y):
    """Copy y to x."""
    for n in range(x.shape[1]):
        x[0, n], x[1, n] = y[0, n], y[1, n]


@part(fastmath=REORDERED)
def dot(x, y):
    """Σ_n x_n y_n."""
    re, im = 0.0, 0.0
    for n in range(x.shape[1]):
        re += x[0, n] * y[0, n] - x[1, n] * y[1, n]
        im += x[0, n] * y[1, n] + x[1, n] * y[0, n]
    return complex(re, im)


@part(fastmath=FUSED)
def add(x, c, y):
    """x_n += c y_n."""
    for n in range(x.shape[1]):
        x[0, n] += c.real * y[0, n] - c.imag * y[1, n]
        x[1, n] += c.real * y[1, n] + c.imag * y[0, n]


@part(fastmath=REORDERED)
def add_product(x, c, y, z):
    """x_n += c y_n z_n; returns Σ_n y_n z_n."""
    total_re, total_im = 0.0, 0.0
    for n in range(x.shape[1]):
        re = y[0, n] * z[0, n] - y[1, n] * z[1, n]
        im = y[0, n] * z[1, n] + y[1, n] * z[0, n]
        total_re += re
        total_im += im
        x[0, n] += c.real * re - c.imag * im
        x[1, n] += c.real * im + c.imag * re
    return complex(total_re, total_im)


SMALLEST, LARGEST = 1e-280, 1e280  # of |d|²: outside, the square loses digits


@lru_cache(maxsize=8)
def circle(l):
    """1 − z and 1 + z at the nodes, in double precision."""
    tables = around_the_circle(l, np.float64(0))
    for table in tables:
        table.flags.writeable = False
    return tables


def wide(*arrays):
    """The arrays in at least double precision."""
    return [x.astype(np.result_type(x, np.float64), copy=False) for x in arrays]


def narrow(gradients, *arguments):
    """Complex gradients in the precision of the arguments."""
    kind = np.result_type(np.complex64, *arguments)
    return [g.astype(kind, copy=False) for g in gradients]


def rows(x, factors):
    """[x, factors] as rows: (…, n), (…, n, r) -> (…, r + 1, n)."""
    batch = np.broadcast_shapes(x.shape[:-1], factors.shape[:-2])
    x = np.broadcast_to(x, (*batch, x.shape[-1]))
    factors = np.broadcast_to(factors, (*batch, *factors.shape[-2:]))
    return np.concatenate([x[..., None, :], factors.swapaxes(-1, -2)], axis=-2)


@part
def _reciprocals(g, s, w, R):
    """1/D_n = d*/|d|², D_n = g − s w_n; by Smith's division if |d|² may lose digits."""
    outside = 0
    for n in range(w.shape[1]):
        re = g.real - (s.real * w[0, n] - s.imag * w[1, n])
        im = g.imag - (s.real * w[1, n] + s.imag * w[0, n])
        size = re * re + im * im
        outside += (size < SMALLEST) | (size > LARGEST)
        R[0, n], R[1, n] = re / size, -im / size
    if outside:
        for n in range(w.shape[1]):
            x = quotient(1.0 + 0.0j, g - s * complex(w[0, n], w[1, n]))
            R[0, n], R[1, n] = x.real, x.imag


@part
def _weights(left, right):
    """left_in right_jn, real and imaginary parts apart: (i, n), (j, n) -> (i, j, 2, n)."""
    W = np.empty((left.shape[0], right.shape[0], 2, left.shape[1]))
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            for n in range(left.shape[1]):
                product = left[i, n] * right[j, n]
                W[i, j, 0, n], W[i, j, 1, n] = product.real, product.imag
    return W


@part
def _sums(R, W, S):
    """S_ij = Σ_n R_n W_ijn."""
    for i in range(S.shape[0]):
        for j in range(S.shape[1]):
            S[i, j] = dot(R, W[i, j])


@part
def eliminated(s, S, M, x):
    """Solve (I_r + s Sᵣᵣ) x' = x in place, with partial pivoting; M is a work array."""
    r = x.size
    for i in range(r):
        for j in range(r):
            M[i, j] = s * S[i + 1, j + 1] + (i == j)
    eliminate(M, x)


@part
def _resolved(R, s, x, factors, X):
    """Write (diag D + s P Qᴴ)⁻¹ factors₀ to X, as R (factors₀ − s Σ_q x_q factors_q)."""
    copied(X, factors[0])
    for q in range(x.size):
        add(X, -s * x[q], factors[q + 1])
    for n in range(R.shape[1]):
        re = R[0, n] * X[0, n] - R[1, n] * X[1, n]
        X[1, n] = R[0, n] * X[1, n] + R[1, n] * X[0, n]
        X[0, n] = re


@gufunc("(l),(l),(l),(l),(n),(i,n),(i,n)->(i,n),(i,n),(n),()", kinds=("c16",))
def transfer_back(d, below, g, s, w, left, right, dleft, dright, dw, ddt):
    """Σ_j d_j of ½K̂'s derivatives by left, right and w; and Σ_j d_j below_j YᵀX."""
    r = left.shape[0] - 1
    modes, W, lefts, rights = pair(w), _weights(left, right), pairs(left), pairs(right)
    S, ST = np.empty((r + 1, r + 1), np.complex128), np.empty((r + 1, r + 1), np.complex128)
    M = np.empty((r, r), np.complex128)
    x, y = np.empty(r, np.complex128), np.empty(r, np.complex128)
    R, w_sums = np.zeros((2, w.size)), np.zeros((2, w.size))
    X, Y = np.zeros((2, w.size)), np.zeros((2, w.size))
    left_sums, right_sums = np.zeros((r + 1, 2, w.size)), np.zeros((r + 1, 2, w.size))
    ddt[0] = 0
    for j in range(g.size):
        _reciprocals(g[j], s[j], modes, R)
        _sums(R, W, S)
        for q in range(r):
            x[q], y[q] = S[q + 1, 0], S[0, q + 1]
            for k in range(r):
                ST[q + 1, k + 1] = S[k + 1, q + 1]
        eliminated(s[j], S, M, x)
        eliminated(s[j], ST, M, y)
        _resolved(R, s[j], x, rights, X)
        _resolved(R, s[j], y, lefts, Y)
        through = d[j] * s[j]
        ddt[0] += d[j] * below[j] * add_product(w_sums, through, X, Y)
        add(left_sums[0], d[j], X)
        add(right_sums[0], d[j], Y)
        for q in range(r):
            add(left_sums[q + 1], -through * y[q], X)
            add(right_sums[q + 1], -through * x[q], Y)
    for q in range(r + 1):
        put(dleft[q], left_sums[q])
        put(dright[q], right_sums[q])
    put(dw, w_sums)


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
def _factors(w, left, right):
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
def _all_rows(w, tau, R):
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
    factors, R = _factors(w, left, right), np.zeros((2 * (n + n % 2), BLOCK))
    tau, rows = np.zeros(BLOCK), np.empty((factors.shape[0] * ROWS, BLOCK))
    S, M = np.empty((size, size), np.complex128), np.empty((size - 1, size - 1), np.complex128)
    x, at_infinity = np.empty(size - 1, np.complex128), 0j
    for k in range(n):
        at_infinity += left[0, k] * right[0, k]
    for start in range(0, tangent.size, BLOCK):
        count = min(BLOCK, tangent.size - start)
        for b in range(count):
            tau[b] = 2 / dt[0] * tangent[start + b]
        _all_rows(w, tau, R)
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


def is_plain(w, dt, l):
    """True if no number is near over- or underflow, and no mode has its pole exactly at a node."""
    return ordinary(w, dt) and not met(w, dt, l)


def met(w, dt, l):
    """True if a mode has its pole exactly at a node."""
    return (closest(w, dt, l)[1] == 0).any()


def spectrum(tangent, turn, w, P, Q, B, C, dt):
    """K̂ at these nodes."""
    left, right = rows(*wide(C, Q.conj())), rows(*wide(B, P))
    return transfer(tangent, turn, *wide(dt), w.astype(np.complex128), left, right)


def gradients(d, below, above, dk, *arguments):
    """dw, dP, dQ, dB, dC and ddt from `d`, that of ½K̂* at nodes, in the precision of all."""
    w, P, Q, B, C, dt = arguments
    (rates,) = wide(dt)
    left, right = rows(C, Q.conj()), rows(B, P)
    g = 2 * below / rates[..., None]
    dleft, dright, dw, ddt = narrow(
        transfer_back(d, below, g, above, w, left, right), dk, *arguments
    )
    dC, dQ = dleft[..., 0, :].conj(), dleft[..., 1:, :].swapaxes(-1, -2)  # by Q*, not Q
    dB, dP = dright[..., 0, :].conj(), dright[..., 1:, :].swapaxes(-1, -2).conj()
    ddt = 2 * ddt / (dt * dt)  # real
    return unbroadcast_each((dw.conj(), dP, dQ, dB, dC, ddt), arguments)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    dtype = np.result_type(w, P, Q, B, C, dt)
    if l == 0:
        return empty(dtype, l, w, P, Q, B, C, dt)
    l, (modes, rates) = int(l), wide(w, dt)
    if not is_plain(modes, rates, l):
        return DPLR_KERNEL_ALIASED.reference(w, P, Q, B, C, dt, l=l)
    return transformed(spectrum(*tangents(l), w, P, Q, B, C, dt), dtype)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    arguments = w, P, Q, B, C, dt
    modes, rates, wide_dk = wide(w, dt, dk)
    if l and met(modes, rates, int(l)):
        return DPLR_KERNEL_ALIASED.bare_vjp(dk, *arguments, l=l)
    d = 2 * fft(wide_dk).conj() / l if l else wide_dk
    return gradients(d, *circle(l), dk, *arguments)


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    precision = np.finfo(np.result_type(w, P, Q, B, C, dt)).dtype
    if l == 0:
        return empty(precision, l, w, P, Q, B, C, dt)
    modes, rates, l = *wide(w, dt), int(l)
    if not is_plain(modes, rates, l):
        return DPLR_KERNEL_ALIASED_REAL.reference(w, P, Q, B, C, dt, l=l)
    nodes = (x[: l // 2 + 1] for x in tangents(l))
    first_half = spectrum(*nodes, *both_halves(w, P, Q, B, C), dt)
    return irfft(first_half, l, workers=threads()).astype(precision)


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """The reference if a D_n is exactly 0."""
    modes, rates, wide_dk = wide(w, dt, dk)
    if l and met(modes, rates, int(l)):
        return DPLR_KERNEL_ALIASED_REAL.bare_vjp(dk, w, P, Q, B, C, dt, l=l)
    count = l // 2 + 1 if l else 0
    alone = 2 * np.arange(count) % max(l, 1) == 0  # z = 1 and −1 are their own conjugates
    d = np.where(alone, 2, 4) * rfft(wide_dk).conj() / l if l else wide_dk
    nodes = (x[:count] for x in circle(l))
    return of_stored(*gradients(d, *nodes, dk, *both_halves(w, P, Q, B, C), dt))
