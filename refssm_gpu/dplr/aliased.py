"""trial"""
from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm_gpu._launching.arrays import namespace, unbroadcast_each
from refssm_gpu._algebra.solving import solve
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu.dplr.bilinear import Bilinear, rounded, wide
from refssm_gpu.dplr.doubling import Powers
from refssm._powers import doublings

def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(w, P, Q, B, C, dt)
    system = Bilinear(w, P, Q, B, dt)
    E = system.E
    for m, odd in doublings(l) if l else ():
        E = E + (E - E@E)
        if odd: E = E + (system.E - E@system.E)
    y = solve(E, system.B_bar[...,None])[...,0]
    return xp.astype(Powers(system.E, y, C, l).kernel(), kind, copy=False)

dplr_kernel_aliased = checked(DPLR_KERNEL_ALIASED, dplr_kernel_aliased)
