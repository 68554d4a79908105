"""CuPy mirror of refssm.resolvent_at_roots: a product of two tables of powers, and one transform.

    1/(1 − aω) = Σ_{k<l} a^k ω^k / (1 − a^l)            if |a| ≤ 1
               = −Σ_{k<l} a^(k−l) ω^k / (1 − a^(−l))    otherwise

because ω^l = 1. With x = ±log a, Re x ≤ 0, no power overflows, and 1 − e^{lx} = −lx φ₁(lx) does not
cancel. Logarithms and coefficients are in double precision; there are only n in a row.
"""

import numpy as np

from refssm.cauchy import RESOLVENT_AT_ROOTS
from refssm_gpu._launching.arrays import common, namespace, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu._launching.powers import rounded, sums
from refssm_gpu.cauchy.kernel import moments
from refssm_gpu.discretize.phi import phi1

NOTHING = -1e4  # stands for log 0: e^{−1e4} is 0 in double precision, and −1e4·0 = 0


def resolvent_at_roots(v, a, *, l):
    """Mirror of refssm.resolvent_at_roots; one error for all entries, as that of a transform."""
    kind, xp = np.result_type(common(v, a), np.complex64), namespace(a)
    shape = np.broadcast_shapes(v.shape[:-1], a.shape[:-1])
    if l == 0:
        return xp.zeros((*shape, 0), dtype=kind)
    a = a.astype(np.complex128)
    rising = xp.abs(a) > 1
    log = xp.where(a == 0, NOTHING, xp.log(xp.where(a == 0, 1.0, a)))
    x = xp.where(rising, -log, log)
    whole = l * x * phi1(l * x)  # e^{lx} − 1
    response = sums(v * (xp.where(rising, xp.exp(x), -1.0) / whole), x, l=l, kind=kind, rising=rising)
    return xp.fft.fft(response)


def resolvent_at_roots_vjp(dk, v, a, *, l):
    """Mirror of refssm.resolvent_at_roots_vjp: sums over the nodes, as for a Cauchy kernel."""
    del l  # dk has it
    kind = np.result_type(common(dk, v, a), np.complex64)
    first, second = moments(dk.astype(kind, copy=False), a.astype(kind, copy=False), None, roots=True)
    return rounded(unbroadcast_each((first, v.conj() * second), (v, a)), kind)


resolvent_at_roots_vjp = checked_vjp(RESOLVENT_AT_ROOTS, resolvent_at_roots_vjp)
resolvent_at_roots = checked(RESOLVENT_AT_ROOTS, resolvent_at_roots)
