"""CuPy mirror of refssm.hope.aliased: the transfer function and one transform."""

import numpy as np

from refssm.hope import HOPE_KERNEL_ALIASED
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._parts.powers import rounded
from refssm_gpu.hope.sums import adjoint, half, summed


def hope_kernel_aliased(h, dt, *, l):
    """Mirror of refssm.hope_kernel_aliased; in double precision, of a real h half of the nodes."""
    xp, kind = namespace(h), common(h, dt)
    if l == 0:
        return xp.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), 0), dtype=kind)
    if kind.kind == "c":
        return xp.fft.ifft(summed(h, dt, l, np.complex128)).astype(kind, copy=False)
    G = summed(h, dt, l, np.complex128, out=half(l))
    return xp.fft.irfft(G, n=l).astype(kind, copy=False)


def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    """Mirror of refssm.hope_kernel_aliased_vjp."""
    xp, wide = namespace(dk), dk.astype(np.complex128)
    gradients = adjoint(xp.fft.fft(wide) / l if l else wide, h, dt)
    return rounded(unbroadcast_each(gradients, (h, dt)), common(dk, h, dt))


hope_kernel_aliased_vjp = checked_vjp(HOPE_KERNEL_ALIASED, hope_kernel_aliased_vjp)
hope_kernel_aliased = checked(HOPE_KERNEL_ALIASED, hope_kernel_aliased)
