"""Numba mirrors of refssm.cauchy: poles outermost, nodes across SIMD lanes, sums in double.

Numba's own complex division raises on zero and branches on every term. Here each term is
v (d*/|d|²), d = z − w, which has no branch; a node where |d|² leaves the safe range is redone with
Smith's division. Sums of single precision inputs are kept in double and rounded once.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc makes its outputs itself, which pyright cannot see)

import numpy as np
from numba import guvectorize, njit

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast
from refssm.cauchy import CAUCHY_KERNEL

SMALLEST, LARGEST = 1e-280, 1e280  # of |d|²: beyond, squaring loses digits to under- or overflow


@njit(error_model="numpy")
def quotient(x, d):
    """x / d by Smith's method; ∞ or NaN where d = 0, as NumPy has it."""
    if d.real == 0 and d.imag == 0:
        return complex(x.real / 0.0, x.imag / 0.0)
    if abs(d.real) >= abs(d.imag):
        ratio = d.imag / d.real
        scale = d.real + d.imag * ratio
        return complex((x.real + x.imag * ratio) / scale, (x.imag - x.real * ratio) / scale)
    ratio = d.real / d.imag
    scale = d.real * ratio + d.imag
    return complex((x.real * ratio + x.imag) / scale, (x.imag * ratio - x.real) / scale)


@njit(error_model="numpy")
def _real_sums(v, w, z, k):
    for l in range(z.size):
        total = 0.0
        for n in range(v.size):
            total += v[n] / (np.float64(z[l]) - w[n])
        k[l] = total


@njit(error_model="numpy")
def _complex_sums(v, w, z, k):
    z_re, z_im = z.real.astype(np.float64), z.imag.astype(np.float64)
    k_re, k_im = np.zeros(z.size), np.zeros(z.size)
    low, high = np.full(z.size, np.inf), np.zeros(z.size)
    for n in range(v.size):
        v_re, v_im = np.float64(v[n].real), np.float64(v[n].imag)
        w_re, w_im = np.float64(w[n].real), np.float64(w[n].imag)
        for l in range(z.size):
            d_re, d_im = z_re[l] - w_re, z_im[l] - w_im
            size = d_re * d_re + d_im * d_im
            low[l], high[l] = min(low[l], size), max(high[l], size)
            R_re, R_im = d_re / size, -d_im / size  # first: v d* underflows where v/d does not
            k_re[l] += v_re * R_re - v_im * R_im
            k_im[l] += v_im * R_re + v_re * R_im
    for l in range(z.size):
        if low[l] > SMALLEST and high[l] < LARGEST:
            k[l] = complex(k_re[l], k_im[l])
        else:
            total = 0j
            for n in range(v.size):
                total += quotient(np.complex128(v[n]), np.complex128(z[l]) - np.complex128(w[n]))
            k[l] = total


@guvectorize(
    ["(f4[:], f4[:], f4[:], f4[:])", "(f8[:], f8[:], f8[:], f8[:])"],
    "(n),(n),(l)->(l)",
    nopython=True,
)
def _cauchy_real(v, w, z, k):
    _real_sums(v, w, z, k)


@guvectorize(
    ["(c8[:], c8[:], c8[:], c8[:])", "(c16[:], c16[:], c16[:], c16[:])"],
    "(n),(n),(l)->(l)",
    nopython=True,
)
def _cauchy_complex(v, w, z, k):
    _complex_sums(v, w, z, k)


@guvectorize(
    [f"({t}[:], {t}[:], {t}[:], {t}[:], {t}[:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(l),(n),(n),(l)->(n),(n),(l)",
    nopython=True,
)
def _cauchy_back(dk, v, w, z, dv, dw, dz):
    """Σ_l dk R*, Σ_l dk (v R²)*, −dk Σ_n (v R²)*, with R = 1/(z − w)."""
    sums = np.zeros(z.size, np.complex128)
    for n in range(v.size):
        v_sum, w_sum = 0j, 0j
        for l in range(z.size):
            R = quotient(1.0 + 0.0j, np.complex128(z[l]) - np.complex128(w[n]))
            vR2 = np.complex128(v[n]) * R * R
            v_sum += np.complex128(dk[l]) * np.conj(R)
            w_sum += np.complex128(dk[l]) * np.conj(vR2)
            sums[l] += vR2
        dv[n], dw[n] = v_sum, w_sum
    for l in range(z.size):
        dz[l] = -np.complex128(dk[l]) * np.conj(sums[l])


def cauchy_kernel(v, w, z):
    """Mirror of refssm.cauchy_kernel."""
    kernel = _cauchy_complex if np.result_type(v, w, z).kind == "c" else _cauchy_real
    return kernel(v, w, z)


def cauchy_kernel_vjp(dk, v, w, z):
    """Mirror of refssm.cauchy_kernel_vjp; real arguments are computed as complex."""
    dv, dw, dz = _cauchy_back(dk, v, w, z)
    return unbroadcast(dv, v), unbroadcast(dw, w), unbroadcast(dz, z)


cauchy_kernel = CAUCHY_KERNEL.checked(cauchy_kernel, COMPILED_TYPES)
cauchy_kernel_vjp = CAUCHY_KERNEL.checked_vjp(cauchy_kernel_vjp, COMPILED_TYPES)
