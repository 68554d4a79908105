"""CuPy mirrors of refssm.vandermonde: two tables of powers in shared memory and their product."""

from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import common, namespace, real_type, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu._parts.powers import moments, sums


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel(v, x, *, l):
    """Tables are made in double precision, rounded once."""
    return sums(v, x, l=l, kind=common(v, x))


@mirror(VANDERMONDE_KERNEL)
def vandermonde_kernel_vjp(dk, v, x, *, l):
    del l  # dk has it
    return _gradients(dk, v, x)


def _gradients(dk, v, x):
    """dv and dx, rounded after the sum over broadcast axes."""
    first, second = moments(dk, x)
    return unbroadcast_and_round((first, conj(v) * second), (v, x))


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real(v, x, *, l):
    """Sums no imaginary parts."""
    return sums(2 * v, x, l=l, kind=real_type(common(v, x)))


@mirror(VANDERMONDE_KERNEL_REAL)
def vandermonde_kernel_real_vjp(dk, v, x, *, l):
    del l  # dk has it
    real = namespace(dk).real(dk) if dk.dtype.kind == "c" else dk
    return tuple(2 * g for g in _gradients(real, v, x))
