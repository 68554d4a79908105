"""Numba mirror of refssm.cauchy_kernel_pairs: the sums of refssm.cauchy_kernel over both halves."""

from inspect import unwrap

from refssm._numerics.pairs import folded, paired
from refssm.cauchy import CAUCHY_KERNEL_PAIRS
from refssm.jit._compiling.mirror import mirror
from refssm.jit.cauchy.kernel import cauchy_kernel, cauchy_kernel_vjp

_whole, _whole_vjp = unwrap(cauchy_kernel), unwrap(cauchy_kernel_vjp)  # arguments are checked


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs(v, w, z):
    return _whole(paired(v), paired(w), z)


@mirror(CAUCHY_KERNEL_PAIRS)
def cauchy_kernel_pairs_vjp(dk, v, w, z):
    dv, dw, dz = _whole_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz
