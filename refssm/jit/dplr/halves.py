"""Numba mirrors of refssm.dplr.pairs: the blocks of whole systems, and half of the nodes.

K̂ at the conjugate of a node is the conjugate of K̂, so the aliased kernel needs ⌊l/2⌋ + 1 nodes.
Backwards, too: what a node adds to the gradient of the stored half, its conjugate adds to the
conjugate of the other half's.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from inspect import unwrap

import numpy as np
from scipy.fft import irfft, rfft

from refssm.dplr import DPLR_KERNEL_ALIASED_REAL, DPLR_KERNEL_REAL
from refssm.dplr.pairs import both_halves, of_stored
from refssm.dplr.system import empty
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.threads import threads
from refssm.jit.dplr.blocks import dplr_kernel, dplr_kernel_vjp
from refssm.jit.dplr.nodes import circle, gradients, is_plain, met, spectrum, tangents, wide

_whole, _whole_vjp = unwrap(dplr_kernel), unwrap(dplr_kernel_vjp)  # arguments are checked


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    """Blocks of the whole system."""
    return _whole(*both_halves(w, P, Q, B, C), dt, l=l).real.copy()


@mirror(DPLR_KERNEL_REAL)
def dplr_kernel_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """Back through the blocks of the whole system."""
    return of_stored(*_whole_vjp(dk, *both_halves(w, P, Q, B, C), dt, l=l))


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """Calls the reference if a D_n is exactly 0."""
    precision = np.finfo(np.result_type(w, P, Q, B, C, dt)).dtype
    if l == 0:
        return empty(precision, l, w, P, Q, B, C, dt)
    modes, rates, l = *wide(w, dt), int(l)
    if not is_plain(modes, rates, l):
        return DPLR_KERNEL_ALIASED_REAL.reference(w, P, Q, B, C, dt, l=l)
    nodes = (x[: l // 2 + 1] for x in tangents(l))
    first_half = spectrum(*nodes, *both_halves(w, P, Q, B, C), dt)
    return irfft(first_half, l, workers=threads()).astype(precision)


@mirror(DPLR_KERNEL_ALIASED_REAL)
def dplr_kernel_aliased_real_vjp(dk, w, P, Q, B, C, dt, *, l):
    """The reference if a D_n is exactly 0."""
    modes, rates, wide_dk = wide(w, dt, dk)
    if l and met(modes, rates, int(l)):
        return DPLR_KERNEL_ALIASED_REAL.bare_vjp(dk, w, P, Q, B, C, dt, l=l)
    count = l // 2 + 1 if l else 0
    alone = 2 * np.arange(count) % max(l, 1) == 0  # z = 1 and −1 are their own conjugates
    d = np.where(alone, 2, 4) * rfft(wide_dk).conj() / l if l else wide_dk
    nodes = (x[:count] for x in circle(l))
    return of_stored(*gradients(d, *nodes, dk, *both_halves(w, P, Q, B, C), dt))
