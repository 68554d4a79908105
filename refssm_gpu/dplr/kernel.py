"""CuPy mirror of refssm.dplr_kernel: heads times places by doubling, without a transform.

The published way needs C(I − Ā^l), so it needs powers of Ā, too, and then a Cauchy sum for each
node. With the powers the kernel is two more products, and poles at nodes are no special case. The
systems are (…, n, n), n at most a few hundred; all products are batches of cuBLAS in double
precision. 64 systems of 64 modes, l = 16384: 6 million complex multiply-adds a system in about 35
launches; the Cauchy sums would be 1 million divisions and 4 million multiply-adds on top of the
powers.
"""

from __future__ import annotations

from refssm.dplr import DPLR_KERNEL
from refssm_gpu._launching.arrays import namespace, unbroadcast_and_round, widened
from refssm_gpu._launching.checked import mirror
from refssm_gpu.dplr.bilinear import Bilinear
from refssm_gpu.dplr.doubling import Chain, Powers


@mirror(DPLR_KERNEL)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """In double precision, rounded once."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    w, P, Q, B, C, dt = widened(w, P, Q, B, C, dt)
    system = Bilinear(w, P, Q, B, dt)
    powers = Powers(Chain(system.E, system.plus), system.B_bar, C, int(l))
    return xp.astype(powers.kernel(), kind, copy=False)


@mirror(DPLR_KERNEL)
def dplr_kernel_vjp(dk, w, P, Q, B, C, dt, *, l):
    """The doubling and the bilinear map, backwards."""
    arguments = w, P, Q, B, C, dt
    wide_dk, w, P, Q, B, C, dt = widened(dk, *arguments)
    system = Bilinear(w, P, Q, B, dt)
    chain = Chain(system.E, system.plus)
    dB_bar, dC = Powers(chain, system.B_bar, C, int(l)).back(wide_dk)
    dw, dP, dQ, dB, ddt = system.back(chain.back(), dB_bar)
    return unbroadcast_and_round((dw, dP, dQ, dB, dC, ddt), arguments)
