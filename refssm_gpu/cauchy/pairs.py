"""CuPy mirror of refssm.cauchy_kernel_pairs: the launches of refssm.cauchy_kernel, both halves."""

from inspect import unwrap

from refssm.cauchy import CAUCHY_KERNEL_PAIRS
from refssm_gpu._algebra.parts import folded, paired
from refssm_gpu._launching.checked import mirror
from refssm_gpu.cauchy import kernel

_whole, _whole_vjp = unwrap(kernel.cauchy_kernel), unwrap(kernel.cauchy_kernel_vjp)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs(v, w, z):
    return _whole(paired(v), paired(w), z)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs_vjp(dk, v, w, z):
    dv, dw, dz = _whole_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz
