"""Numba mirror of refssm.cauchy_kernel_pairs: the sums of refssm.cauchy_kernel over both halves."""

from inspect import unwrap

from refssm._declaration.operator import COMPILED_TYPES
from refssm._numerics.pairs import folded, paired
from refssm.cauchy import CAUCHY_KERNEL_PAIRS
from refssm.jit.cauchy.kernel import cauchy_kernel, cauchy_kernel_vjp

_whole, _whole_vjp = unwrap(cauchy_kernel), unwrap(cauchy_kernel_vjp)  # arguments are checked


def cauchy_kernel_pairs(v, w, z):
    """Mirror of refssm.cauchy_kernel_pairs."""
    return _whole(paired(v), paired(w), z)


def cauchy_kernel_pairs_vjp(dk, v, w, z):
    """Mirror of refssm.cauchy_kernel_pairs_vjp."""
    dv, dw, dz = _whole_vjp(dk, paired(v), paired(w), z)
    return folded(dv), folded(dw), dz


cauchy_kernel_pairs = CAUCHY_KERNEL_PAIRS.checked(cauchy_kernel_pairs, COMPILED_TYPES)
cauchy_kernel_pairs_vjp = CAUCHY_KERNEL_PAIRS.checked_vjp(cauchy_kernel_pairs_vjp, COMPILED_TYPES)
