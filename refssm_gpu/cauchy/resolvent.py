"""CuPy mirror of refssm.resolvent_at_roots: a product of two tables of powers, and one transform.

    1/(1 − aω) = Σ_{k<l} a^k ω^k / (1 − a^l)            if |a| ≤ 1
               = −Σ_{k<l} a^(k−l) ω^k / (1 − a^(−l))    otherwise

because ω^l = 1. With x = ±log a, Re x ≤ 0, no power overflows, and 1 − e^{lx} = −lx φ₁(lx) does not
cancel. Logarithms and coefficients are made by one launch, in double precision.
"""

import numpy as np

from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm_gpu._algebra.parts import conj
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_and_round
from refssm_gpu._launching.checked import mirror
from refssm_gpu._parts.modes import RESOLVENT, modes
from refssm_gpu.cauchy.kernel import moments


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots(v, a, *, l):
    """One error for all entries, as that of a transform."""
    kind, xp = np.result_type(common(v, a), np.complex64), namespace(a)
    if l == 0:
        return xp.zeros((*np.broadcast_shapes(v.shape[:-1], a.shape[:-1]), 0), dtype=kind)
    return xp.fft.fft(modes(RESOLVENT, a.astype(kind, copy=False), None, v, None, l).kernel(l))


@mirror(RESOLVENT_AT_ROOTS)
def resolvent_at_roots_vjp(dk, v, a, *, l):
    """Sums over the nodes, as for a Cauchy kernel."""
    del l  # dk has it
    kind = np.result_type(common(dk, v, a), np.complex64)
    first, second = moments(
        dk.astype(kind, copy=False), a.astype(kind, copy=False), None, roots=True
    )
    return unbroadcast_and_round((first, conj(v) * second), (v, a))
