"""CuPy mirrors of refssm.diagonal.dss: zero-order hold with B = 1, and the softmax over time."""

from refssm.diagonal import DSS_EXP_KERNEL, DSS_SOFTMAX_KERNEL
from refssm_gpu._launching.arrays import unbroadcast_and_round
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._parts.modes import HOLD, SOFTMAX, modes


def dss_exp_kernel(w, C, dt, *, l):
    """Mirror of refssm.dss_exp_kernel."""
    return modes(HOLD, w, None, C, dt).kernel(l)


def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    """Mirror of refssm.dss_exp_kernel_vjp."""
    del l  # dk has it
    dw, _, dC, ddt = modes(HOLD, w, None, C, dt).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))


def dss_softmax_kernel(w, C, dt, *, l):
    """Mirror of refssm.dss_softmax_kernel; growing modes are summed backwards in time."""
    return modes(SOFTMAX, w, None, C, dt, l).kernel(l)


def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    """Mirror of refssm.dss_softmax_kernel_vjp."""
    dw, _, dC, ddt = modes(SOFTMAX, w, None, C, dt, l).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))


dss_exp_kernel_vjp = checked_vjp(DSS_EXP_KERNEL, dss_exp_kernel_vjp)
dss_exp_kernel = checked(DSS_EXP_KERNEL, dss_exp_kernel)
dss_softmax_kernel_vjp = checked_vjp(DSS_SOFTMAX_KERNEL, dss_softmax_kernel_vjp)
dss_softmax_kernel = checked(DSS_SOFTMAX_KERNEL, dss_softmax_kernel)
