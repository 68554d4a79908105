"""Numba mirrors of refssm.vandermonde: two short tables of powers instead of l exponentials.

j = aq + b with q ≈ √l, so e^{x j} = e^{x a q} e^{x b}: n·2√l exponentials, then products with time
across SIMD lanes. Every table entry is a separate exponential, because repeated products drift.
Sums of single precision inputs are in double precision and rounded once.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast
from refssm.jit._gufunc import compiled
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL


@njit(error_model="numpy")
def _powers(x, count, step):
    """e^{x step i}, i < count, as real and imaginary parts."""
    re, im = np.empty((x.size, count)), np.empty((x.size, count))
    for n in range(x.size):
        rate, turn = np.float64(x[n].real), np.float64(x[n].imag)
        for i in range(count):
            size, angle = np.exp(rate * (i * step)), turn * (i * step)
            re[n, i], im[n, i] = size * np.cos(angle), size * np.sin(angle)
    return re, im


@njit(error_model="numpy")
def _blocks(l):
    """q ≈ √l and the number of blocks of that length."""
    q = max(1, int(np.ceil(np.sqrt(l))))
    return q, (l + q - 1) // q


@njit(error_model="numpy")
def _decays(v, x, k):
    """Σ v e^{x j} of real modes, in double precision; separate, because ∞ · 0i would be NaN."""
    q, count = _blocks(k.size)
    b_re, _ = _powers(x, q, 1)
    a_re, _ = _powers(x, count, q)
    sums = np.empty(q)
    for a in range(count):
        sums[:] = 0
        for n in range(v.size):
            head = np.float64(v[n]) * a_re[n, a]
            for b in range(q):
                sums[b] += head * b_re[n, b]
        for b in range(min(q, k.size - a * q)):
            k[a * q + b] = sums[b]


@njit(error_model="numpy")
def _real_sums(v, x, k):
    """Re Σ v e^{x j}, in double precision."""
    q, count = _blocks(k.size)
    b_re, b_im = _powers(x, q, 1)
    a_re, a_im = _powers(x, count, q)
    sums = np.empty(q)
    for a in range(count):
        sums[:] = 0
        for n in range(v.size):
            v_re, v_im = np.float64(v[n].real), np.float64(v[n].imag)
            h_re = v_re * a_re[n, a] - v_im * a_im[n, a]
            h_im = v_re * a_im[n, a] + v_im * a_re[n, a]
            for b in range(q):
                sums[b] += h_re * b_re[n, b] - h_im * b_im[n, b]
        for b in range(min(q, k.size - a * q)):
            k[a * q + b] = sums[b]


@njit(error_model="numpy")
def _complex_sums(v, x, k):
    """Σ v e^{x j}, in double precision."""
    q, count = _blocks(k.size)
    b_re, b_im = _powers(x, q, 1)
    a_re, a_im = _powers(x, count, q)
    re, im = np.empty(q), np.empty(q)
    for a in range(count):
        re[:], im[:] = 0, 0
        for n in range(v.size):
            v_re, v_im = np.float64(v[n].real), np.float64(v[n].imag)
            h_re = v_re * a_re[n, a] - v_im * a_im[n, a]
            h_im = v_re * a_im[n, a] + v_im * a_re[n, a]
            for b in range(q):
                re[b] += h_re * b_re[n, b] - h_im * b_im[n, b]
                im[b] += h_re * b_im[n, b] + h_im * b_re[n, b]
        for b in range(min(q, k.size - a * q)):
            k[a * q + b] = complex(re[b], im[b])


@compiled(["(c8[:], c8[:], f4[:], c8[:])", "(c16[:], c16[:], f8[:], c16[:])"], "(n),(n),(l)->(l)")
def _complex(v, x, length, k):
    _complex_sums(v, x, k)


@compiled(["(c8[:], c8[:], f4[:], f4[:])", "(c16[:], c16[:], f8[:], f8[:])"], "(n),(n),(l)->(l)")
def _real_part(v, x, length, k):
    _real_sums(v, x, k)


@compiled(["(f4[:], f4[:], f4[:], f4[:])", "(f8[:], f8[:], f8[:], f8[:])"], "(n),(n),(l)->(l)")
def _real(v, x, length, k):
    _decays(v, x, k)


@compiled(
    ["(c8[:], c8[:], c8[:], c8[:], c8[:])", "(c16[:], c16[:], c16[:], c16[:], c16[:])"],
    "(l),(n),(n)->(n),(n)",
)
def _back(dk, v, x, dv, dx):
    """Σ_j dk_j E_nj* and v_n* Σ_j j dk_j E_nj*, block by block."""
    q, count = _blocks(dk.size)
    b_re, b_im = _powers(x, q, 1)
    a_re, a_im = _powers(x, count, q)
    for n in range(v.size):
        total, moment = 0j, 0j
        for a in range(count):
            block, inner = 0j, 0j
            for b in range(min(q, dk.size - a * q)):
                term = np.complex128(dk[a * q + b]) * complex(b_re[n, b], -b_im[n, b])
                block += term
                inner += b * term
            head = complex(a_re[n, a], -a_im[n, a])
            total += head * block
            moment += head * (a * q * block + inner)
        dv[n], dx[n] = total, np.conj(np.complex128(v[n])) * moment


@compiled(
    ["(f4[:], f4[:], f4[:], f4[:], f4[:])", "(f8[:], f8[:], f8[:], f8[:], f8[:])"],
    "(l),(n),(n)->(n),(n)",
)
def _back_real(dk, v, x, dv, dx):
    """The same for real arguments."""
    q, count = _blocks(dk.size)
    b_re, _ = _powers(x, q, 1)
    a_re, _ = _powers(x, count, q)
    for n in range(v.size):
        total, moment = 0.0, 0.0
        for a in range(count):
            block, inner = 0.0, 0.0
            for b in range(min(q, dk.size - a * q)):
                term = np.float64(dk[a * q + b]) * b_re[n, b]
                block += term
                inner += b * term
            total += a_re[n, a] * block
            moment += a_re[n, a] * (a * q * block + inner)
        dv[n], dx[n] = total, v[n] * moment


def _length(v, x, l):
    """v and x in their common type, and a dummy array that gives a gufunc its output length."""
    common = np.result_type(v, x)
    return v.astype(common), x.astype(common), np.empty(l, np.finfo(common).dtype)


def vandermonde_kernel(v, x, *, l):
    """Mirror of refssm.vandermonde_kernel."""
    arrays = _length(v, x, l)
    return (_complex if arrays[0].dtype.kind == "c" else _real)(*arrays)


def vandermonde_kernel_vjp(dk, v, x, *, l):
    """Mirror of refssm.vandermonde_kernel_vjp."""
    del l  # dk has it
    real = np.result_type(dk, v, x).kind == "f"
    dv, dx = (_back_real if real else _back)(dk, v, x)
    return unbroadcast(dv, v), unbroadcast(dx, x)


def vandermonde_kernel_real(v, x, *, l):
    """Mirror of refssm.vandermonde_kernel_real; does not sum imaginary parts."""
    arrays = _length(v, x, l)
    return 2 * (_real_part if arrays[0].dtype.kind == "c" else _real)(*arrays)


def vandermonde_kernel_real_vjp(dk, v, x, *, l):
    """Mirror of refssm.vandermonde_kernel_real_vjp."""
    return vandermonde_kernel_vjp(2 * dk.real, v, x, l=l)


vandermonde_kernel_real_vjp = VANDERMONDE_KERNEL_REAL.checked_vjp(
    vandermonde_kernel_real_vjp, COMPILED_TYPES
)
vandermonde_kernel_real = VANDERMONDE_KERNEL_REAL.checked(vandermonde_kernel_real, COMPILED_TYPES)
vandermonde_kernel_vjp = VANDERMONDE_KERNEL.checked_vjp(vandermonde_kernel_vjp, COMPILED_TYPES)
vandermonde_kernel = VANDERMONDE_KERNEL.checked(vandermonde_kernel, COMPILED_TYPES)
