"""CuPy mirrors of refssm.diagonal.discretized: n coefficients and logarithms, then a Vandermonde kernel.

All that is of size n is in double precision and rounded once, in the tables.
"""

from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR, DIAGONAL_KERNEL_ZOH
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._launching.powers import each_wide, later_moments, moments, rounded, sums
from refssm_gpu.discretize.phi import moment, phi1

NOTHING = -1e4  # stands for log 0: e^{−1e4} is 0 in double precision, and −1e4·0 = 0


def held(w, dt):
    """h = dt, z = dt·w and H = dt φ₁(z), a number for each mode."""
    h = dt[..., None]
    z = h * w
    return h, z, h * phi1(z)


def held_back(dk, w, B, C, dt):
    """The gradients of zero-order hold, over the whole batch."""
    xp = namespace(w)
    h, z, H = held(w, dt)
    S, T = moments(dk, z)
    CB = conj(C * B)
    dw = CB * (conj(h * h * moment(1, z)) * S + conj(h * H) * T)
    ddt = xp.sum(CB * (conj(xp.exp(z)) * S + conj(w * H) * T), axis=-1)
    return dw, conj(C * H) * S, conj(H * B) * S, ddt


def diagonal_kernel_zoh(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh."""
    kind = common(w, B, C, dt)
    w, B, C, dt = each_wide(w, B, C, dt)
    _, z, H = held(w, dt)
    return sums(C * H * B, z, l=l, kind=kind)


def diagonal_kernel_zoh_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_zoh_vjp."""
    del l  # dk has it
    gradients = held_back(dk, *each_wide(w, B, C, dt))
    return rounded(unbroadcast_each(gradients, (w, B, C, dt)), common(dk, w, B, C, dt))


def _logarithm(h):
    """log ±Ā, Ā = (1 + h)/(1 − h); and, for real h, True where the sign is − (Ā < 0)."""
    xp = namespace(h)
    compound = xp.isdtype(h.dtype, "complex floating")
    A_bar = (1 + h) / (1 - h)
    fast = xp.abs(A_bar) < 0.5  # there 1 + h is more accurate than artanh h
    negative = None if compound else A_bar < 0
    root = A_bar if compound else xp.abs(A_bar)
    g = h if compound else xp.where(xp.abs(h) > 1, 1 / xp.where(h == 0, 1.0, h), h)
    slow = 2 * xp.atanh(xp.where(fast, 0.0, g))
    log = xp.log(xp.where(fast & (root != 0), root, 1.0))
    return xp.where(fast, xp.where(root == 0, NOTHING, log), slow), negative


def diagonal_kernel_bilinear(w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear; powers of a small Ā also by its logarithm."""
    kind = common(w, B, C, dt)
    w, B, C, dt = each_wide(w, B, C, dt[..., None])
    h = dt * w / 2
    log, negative = _logarithm(h)
    return sums(C * (dt / (1 - h)) * B, log, l=l, kind=kind, turned=negative)


def diagonal_kernel_bilinear_vjp(dk, w, B, C, dt, *, l):
    """Mirror of refssm.diagonal_kernel_bilinear_vjp."""
    del l  # dk has it
    primals, kind, xp = (w, B, C, dt), common(dk, w, B, C, dt), namespace(w)
    w, B, C, h = each_wide(w, B, C, dt[..., None])
    z = h * w
    R, (log, negative) = 1 / (1 - z / 2), _logarithm(z / 2)
    S, T = later_moments(dk, log, negative)
    through, H = conj(C * B * (R * R)), h * R
    dw = h * h * through * (S / 2 + conj(R) * T)
    ddt = xp.sum(through * (S + conj(z * R) * T), axis=-1)
    gradients = dw, conj(C * H) * S, conj(H * B) * S, ddt
    return rounded(unbroadcast_each(gradients, primals), kind)


diagonal_kernel_zoh_vjp = checked_vjp(DIAGONAL_KERNEL_ZOH, diagonal_kernel_zoh_vjp)
diagonal_kernel_zoh = checked(DIAGONAL_KERNEL_ZOH, diagonal_kernel_zoh)
diagonal_kernel_bilinear_vjp = checked_vjp(DIAGONAL_KERNEL_BILINEAR, diagonal_kernel_bilinear_vjp)
diagonal_kernel_bilinear = checked(DIAGONAL_KERNEL_BILINEAR, diagonal_kernel_bilinear)
