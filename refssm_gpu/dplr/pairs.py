"""CuPy mirrors of refssm.dplr.pairs: the kernels of whole systems, of which the real part is kept.

Half of the nodes would do for the aliased kernel, but its launches count all of them.
"""

from inspect import unwrap

from refssm.dplr import DPLR_KERNEL_ALIASED_REAL, DPLR_KERNEL_REAL
from refssm_gpu._algebra.parts import folded, paired
from refssm_gpu._launching.arrays import common, namespace
from refssm_gpu._launching.checked import mirror
from refssm_gpu.dplr import aliased, kernel

_whole, _wrapped = unwrap(kernel.dplr_kernel), unwrap(aliased.dplr_kernel_aliased)
_whole_vjp = unwrap(kernel.dplr_kernel_vjp)
_wrapped_vjp = unwrap(aliased.dplr_kernel_aliased_vjp)


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    return _real_part(_whole(*_both_halves(w, P, Q, B, C), dt, l=l))


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    return _gradients(_whole_vjp, dk, w, P, Q, B, C, dt, l=l)


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    return _real_part(_wrapped(*_both_halves(w, P, Q, B, C), dt, l=l))


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    return _gradients(_wrapped_vjp, dk, w, P, Q, B, C, dt, l=l)


def _both_halves(w, P, Q, B, C):
    """(x, x*) of w, P, Q, B and C."""
    return paired(w), paired(P, -2), paired(Q, -2), paired(B), paired(C)


def _real_part(K):
    """A real copy, so that the imaginary part is not kept."""
    xp = namespace(K)
    return xp.asarray(xp.real(K), copy=True) if K.dtype.kind == "c" else K


def _gradients(vjp, dk, w, P, Q, B, C, dt, *, l):
    """Those of the stored half and of dt; the kernel's cotangent gets the type of the arguments."""
    dk = namespace(dk).astype(dk, common(w, P, Q, B, C, dt), copy=False)
    dw, dP, dQ, dB, dC, ddt = vjp(dk, *_both_halves(w, P, Q, B, C), dt, l=l)
    return folded(dw), folded(dP, -2), folded(dQ, -2), folded(dB), folded(dC), ddt
