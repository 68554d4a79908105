"""CuPy mirror of refssm.dplr_kernel_aliased: the spectrum at all nodes, and one transform.

C Ā^k (I − Ā^l)⁻¹ B̄ by doubling would be fewer operations, but the solve with I − Ā^l loses three
bits and more where modes of many sizes are coupled, and its derivative by dt is no exact zero at
z = 1. 64 systems of 64 modes, l = 16384: 67 million complex reciprocals, and for rank 1 four
products of each with a number of its mode. Ranks 1 and 2 have kernels; other ranks are array code.
"""

from __future__ import annotations

from refssm.dplr import DPLR_KERNEL_ALIASED
from refssm_gpu._algebra.parts import batch_of
from refssm_gpu._launching.arrays import namespace, unbroadcast_and_round, widened
from refssm_gpu._launching.checked import mirror
from refssm_gpu.dplr.nodes import gradients, spectrum


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """In double precision, rounded once."""
    xp = namespace(w)
    kind = xp.result_type(w, P, Q, B, C, dt)
    if l == 0:
        shape = batch_of((w, P, Q, B, C, dt), (1, 2, 2, 1, 1, 0))
        return xp.zeros((*shape, 0), dtype=kind)
    w, P, Q, B, C, dt = widened(w, P, Q, B, C, dt)
    K = xp.fft.ifft(spectrum(w, P, Q, B, C, dt, int(l)))
    return xp.astype(K if xp.isdtype(kind, "complex floating") else xp.real(K), kind, copy=False)


@mirror(DPLR_KERNEL_ALIASED)
def dplr_kernel_aliased_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Sums over the nodes."""
    del l  # dk has it
    arguments = w, P, Q, B, C, dt
    wide_dk, w, P, Q, B, C, dt = widened(dk, *arguments)
    found = gradients(wide_dk, w, P, Q, B, C, dt)
    return unbroadcast_and_round(found, arguments)
