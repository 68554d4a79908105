"""CuPy mirror of refssm.dplr_kernel_aliased: C Ā^k y with (I − Ā^l) y = B̄."""

from __future__ import annotations

from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm_gpu._algebra.solving import solve
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu.dplr.bilinear import Bilinear, rounded, wide
from refssm_gpu.dplr.doubling import Chain, Powers
from refssm_gpu.dplr.nodes import gradients


def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_aliased; in double precision, rounded once."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = wide(w, P, Q, B, C, dt)
    system = Bilinear(w, P, Q, B, dt)
    chain = Chain(system.E, system.plus)
    y = _wrapped(chain, system.B_bar, int(l))
    return xp.astype(Powers(chain, y, C, int(l)).kernel(), kind, copy=False)


def _wrapped(chain: Chain, B_bar: Array, l: int) -> Array:
    """(I − Ā^l)⁻¹ B̄: the states that all earlier periods left, and this one."""
    return solve(chain.whole(l), B_bar[..., None])[..., 0] if l else B_bar


def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Mirror of refssm.dplr_kernel_aliased_vjp: sums over the nodes."""
    del l  # dk has it
    arguments = w, P, Q, B, C, dt
    found = gradients(*wide(dk, *arguments))
    return rounded(unbroadcast_each(found, arguments), dk, *arguments)


dplr_kernel_aliased_vjp = checked_vjp(DPLR_KERNEL_ALIASED, dplr_kernel_aliased_vjp)
dplr_kernel_aliased = checked(DPLR_KERNEL_ALIASED, dplr_kernel_aliased)
