"""CuPy mirrors of refssm.diagonal.dss: zero-order hold with B = 1, and the softmax over time."""

from refssm.diagonal import DSS_EXP_KERNEL, DSS_SOFTMAX_KERNEL
from refssm_gpu._launching.arrays import unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu._parts.modes import HOLD, SOFTMAX, modes


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel(w, C, dt, *, l):
    return modes(HOLD, w, None, C, dt).kernel(l)


@mirror(DSS_EXP_KERNEL)
def dss_exp_kernel_vjp(dk, w, C, dt, *, l):
    del l  # dk has it
    dw, _, dC, ddt = modes(HOLD, w, None, C, dt).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel(w, C, dt, *, l):
    """Growing modes are summed backwards in time."""
    return modes(SOFTMAX, w, None, C, dt, l).kernel(l)


@mirror(DSS_SOFTMAX_KERNEL)
def dss_softmax_kernel_vjp(dk, w, C, dt, *, l):
    dw, _, dC, ddt = modes(SOFTMAX, w, None, C, dt, l).gradients(dk)
    return unbroadcast_and_round((dw, dC, ddt), (w, C, dt))
