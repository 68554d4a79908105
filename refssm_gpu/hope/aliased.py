"""CuPy mirror of refssm.hope.aliased: the transfer function and one transform."""

import numpy as np

from refssm.hope import HOPE_KERNEL_ALIASED
from refssm_gpu._algebra.transforms import real_signal
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu.hope.sums import at_nodes, at_nodes_back, half


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased(h, dt, *, l):
    """In double precision, of a real h half of the nodes."""
    xp, kind = namespace(h), common(h, dt)
    if l == 0:
        return xp.zeros((*np.broadcast_shapes(h.shape[:-1], dt.shape), 0), dtype=kind)
    if kind.kind == "c":
        return xp.fft.ifft(at_nodes(h, dt, l, np.complex128)).astype(kind, copy=False)
    G = at_nodes(h, dt, l, np.complex128, out=half(l))
    return real_signal(G, l).astype(kind, copy=False)


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    xp, wide = namespace(dk), dk.astype(np.complex128)
    gradients = at_nodes_back(xp.fft.fft(wide) / l if l else wide, h, dt)
    return unbroadcast_and_round(gradients, (h, dt))
