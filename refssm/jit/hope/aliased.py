"""Mirror of refssm.hope.aliased: the mirrored transfer function, then an inverse transform."""

import numpy as np
from numpy.fft import fft, ifft, irfft

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_KERNEL_ALIASED
from refssm.jit._compiling.mirror import mirror
from refssm.jit.hope.sums import adjoint, summed


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased(h, dt, *, l):
    """Computed in double precision and rounded once."""
    dtype = np.result_type(h, dt)
    G = summed(h, dt, l, np.complex128)
    if l == 0:
        return np.zeros(G.shape, dtype)
    if dtype.kind == "c":
        return ifft(G).astype(dtype)
    return irfft(G[..., : l // 2 + 1], l).astype(dtype)


@mirror(HOPE_KERNEL_ALIASED)
def hope_kernel_aliased_vjp(dk, h, dt, *, l):
    kind = np.result_type(dk, h, dt, np.complex64)
    wide = dk.astype(np.complex128)
    gradients = adjoint(fft(wide) / l if l else wide, h, dt)
    return unbroadcast_each((g.astype(kind) for g in gradients), (h, dt))
