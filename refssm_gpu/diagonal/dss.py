"""CuPy mirrors of refssm.diagonal.dss: zero-order hold with B = 1, and the softmax over time."""

from refssm.diagonal import DSS_EXP_KERNEL, DSS_SOFTMAX_KERNEL
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._launching.powers import each_wide, moments, rounded, sums
from refssm_gpu.diagonal.discretized import held, held_back
from refssm_gpu.discretize.phi import phi1


def dss_exp_kernel(w, C, dt, *, l):
    """Mirror of refssm.dss_exp_kernel."""
    kind = common(w, C, dt)
    w, C, dt = each_wide(w, C, dt)
    _, z, H = held(w, dt)
    return sums(C * H, z, l=l, kind=kind)


def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    """Mirror of refssm.dss_exp_kernel_vjp."""
    del l  # dk has it
    wide = each_wide(w, C, dt)
    dw, _, dC, ddt = held_back(dk, wide[0], namespace(C).ones_like(wide[1]), *wide[1:])
    return rounded(unbroadcast_each((dw, dC, ddt), (w, C, dt)), common(dk, w, C, dt))


def _fallen(z, terms):
    """x = ∓z with Re x ≤ 0; True where z grows; e^x − 1 and e^{x·terms} − 1."""
    xp = namespace(z)
    rising = xp.real(z) > 0 if xp.isdtype(z.dtype, "complex floating") else z > 0
    x = xp.where(rising, -z, z)
    return x, rising, x * phi1(x), terms * x * phi1(terms * x)


def dss_softmax_kernel(w, C, dt, *, l):
    """Mirror of refssm.dss_softmax_kernel; growing modes are summed backwards in time."""
    kind = common(w, C, dt)
    w, C, h = each_wide(w, C, dt[..., None])
    x, rising, one, whole = _fallen(h * w, max(1, l))
    return sums(C / w * (one / whole), x, l=l, kind=kind, rising=rising)


def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    """Mirror of refssm.dss_softmax_kernel_vjp."""
    primals, kind, xp = (w, C, dt), common(dk, w, C, dt), namespace(w)
    terms = max(1, l)
    w, C, h = each_wide(w, C, dt[..., None])
    x, rising, one, whole = _fallen(h * w, terms)
    r, mean = one / whole, terms * (xp.exp(terms * x) / whole) - xp.exp(x) / one
    S, T = moments(dk, x, rising=rising)
    v = conj(C / w * r)
    centred = v * (T - conj(mean) * S)
    dz = xp.where(rising, -centred, centred)
    dw, ddt = h * dz - v * S / conj(w), xp.sum(conj(w) * dz, axis=-1)
    return rounded(unbroadcast_each((dw, conj(r / w) * S, ddt), primals), kind)


dss_exp_kernel_vjp = checked_vjp(DSS_EXP_KERNEL, dss_exp_kernel_vjp)
dss_exp_kernel = checked(DSS_EXP_KERNEL, dss_exp_kernel)
dss_softmax_kernel_vjp = checked_vjp(DSS_SOFTMAX_KERNEL, dss_softmax_kernel_vjp)
dss_softmax_kernel = checked(DSS_SOFTMAX_KERNEL, dss_softmax_kernel)
