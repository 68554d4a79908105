"""CuPy mirror of refssm.dplr_kernel: heads times places by doubling, without a transform."""

from __future__ import annotations

from refssm.dplr import DPLR_KERNEL
from refssm_gpu._launching.arrays import namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu.dplr.bilinear import Bilinear, rounded, wide
from refssm_gpu.dplr.doubling import Powers


def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel; in double precision, rounded once, poles at nodes included."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(w, P, Q, B, C, dt)
    system = Bilinear(w, P, Q, B, dt)
    return xp.astype(Powers(system.E, system.B_bar, C, l).kernel(), kind, copy=False)


def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_vjp: the doubling and the bilinear map, backwards."""
    arguments = w, P, Q, B, C, dt
    dk_, w, P, Q, B, C, dt = wide(dk, *arguments)
    system = Bilinear(w, P, Q, B, dt)
    dE, dB_bar, dC = Powers(system.E, system.B_bar, C, l).back(dk_)
    dw, dP, dQ, dB, ddt = system.back(dE, dB_bar)
    found = unbroadcast_each((dw, dP, dQ, dB, dC, ddt), arguments)
    return rounded(found, dk, *arguments)


dplr_kernel_vjp = checked_vjp(DPLR_KERNEL, dplr_kernel_vjp)
dplr_kernel = checked(DPLR_KERNEL, dplr_kernel)
