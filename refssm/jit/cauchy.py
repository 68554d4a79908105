"""Numba mirrors of refssm.cauchy: poles outermost, nodes across SIMD lanes, sums in double.

Numba's complex division raises on zero and branches for every term. Here each term is v (d*/|d|²),
d = z − w, without a branch; a node where |d|² leaves the safe range is computed again with Smith's
division. Sums of single precision inputs are in double precision and rounded once.

A resolvent at roots of unity is a Cauchy kernel, v/(1 − aω) = z v/(z − a) with z = ω*.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm._operator import COMPILED_TYPES
from refssm._roots import roots_of_unity
from refssm.broadcasting import unbroadcast, unbroadcast_each
from refssm.cauchy import CAUCHY_KERNEL, RESOLVENT_AT_ROOTS
from refssm.jit._gufunc import compiled, gufunc

SMALLEST, LARGEST = 1e-280, 1e280  # of |d|²: outside, the square loses digits by under- or overflow


@njit(error_model="numpy")
def quotient(x, d):
    """x / d by Smith's method; ∞ or NaN if d = 0, as in NumPy."""
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
            R_re, R_im = d_re / size, -d_im / size  # first: v d* may underflow where v/d does not
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


@compiled(["(f4[:], f4[:], f4[:], f4[:])", "(f8[:], f8[:], f8[:], f8[:])"], "(n),(n),(l)->(l)")
def _cauchy_real(v, w, z, k):
    _real_sums(v, w, z, k)


@compiled(["(c8[:], c8[:], c8[:], c8[:])", "(c16[:], c16[:], c16[:], c16[:])"], "(n),(n),(l)->(l)")
def _cauchy_complex(v, w, z, k):
    _complex_sums(v, w, z, k)


@compiled(
    [f"({t}[:], {t}[:], {t}[:], {t}[:], {t}[:], {t}[:], {t}[:])" for t in ("c8", "c16")],
    "(l),(n),(n),(l)->(n),(n),(l)",
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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _moments(d_re, d_im, z_re, z_im, a):
    """Σ_l d R and Σ_l d R², R = 1/(z − a); and True if some |z − a|² may lose digits."""
    first_re, first_im, second_re, second_im, outside = 0.0, 0.0, 0.0, 0.0, 0
    for l in range(z_re.size):
        re, im = z_re[l] - a.real, z_im[l] - a.imag
        size = re * re + im * im
        outside += (size < SMALLEST) | (size > LARGEST)
        R_re, R_im = re / size, -im / size
        t_re, t_im = d_re[l] * R_re - d_im[l] * R_im, d_re[l] * R_im + d_im[l] * R_re
        first_re += t_re
        first_im += t_im
        second_re += t_re * R_re - t_im * R_im
        second_im += t_re * R_im + t_im * R_re
    return complex(first_re, first_im), complex(second_re, second_im), outside > 0


@gufunc("(l),(l),(n)->(n),(n)", kinds=("c16",))
def _resolvent_back(d, z, a, first, second):
    """Σ_l d/(z − a) and Σ_l d/(z − a)², nodes across SIMD lanes."""
    d_re, d_im, z_re, z_im = d.real.copy(), d.imag.copy(), z.real.copy(), z.imag.copy()
    for n in range(a.size):
        first[n], second[n], outside = _moments(d_re, d_im, z_re, z_im, a[n])
        if outside:
            first[n], second[n] = 0, 0
            for l in range(z.size):
                R = quotient(1.0 + 0.0j, z[l] - a[n])
                first[n] += d[l] * R
                second[n] += d[l] * R * R


def cauchy_kernel(v, w, z):
    """Mirror of refssm.cauchy_kernel."""
    kernel = _cauchy_complex if np.result_type(v, w, z).kind == "c" else _cauchy_real
    return kernel(v, w, z)


def cauchy_kernel_vjp(dk, v, w, z):
    """Mirror of refssm.cauchy_kernel_vjp; real arguments are computed as complex."""
    dv, dw, dz = _cauchy_back(dk, v, w, z)
    return unbroadcast(dv, v), unbroadcast(dw, w), unbroadcast(dz, z)


def resolvent_at_roots(v, a, *, l):
    """Mirror of refssm.resolvent_at_roots; computed in double precision and rounded once."""
    z = roots_of_unity(l, np.float64).conj()
    k = z * _cauchy_complex(v.astype(np.complex128), a, z)
    return k.astype(np.result_type(v, a, np.complex64))


def resolvent_at_roots_vjp(dk, v, a, *, l):
    """Mirror of refssm.resolvent_at_roots_vjp; real arguments are computed as complex."""
    z = roots_of_unity(l, np.float64).conj()
    first, second = _resolvent_back(dk.conj() * z, z, a)
    kind = np.result_type(dk, v, a, np.complex64)
    gradients = (g.conj().astype(kind) for g in (first, v * second))
    return unbroadcast_each(gradients, (v, a))


cauchy_kernel = CAUCHY_KERNEL.checked(cauchy_kernel, COMPILED_TYPES)
cauchy_kernel_vjp = CAUCHY_KERNEL.checked_vjp(cauchy_kernel_vjp, COMPILED_TYPES)
resolvent_at_roots = RESOLVENT_AT_ROOTS.checked(resolvent_at_roots, COMPILED_TYPES)
resolvent_at_roots_vjp = RESOLVENT_AT_ROOTS.checked_vjp(resolvent_at_roots_vjp, COMPILED_TYPES)
