"""Enclosures for refssm.cauchy."""

from flint import acb, arb, fmpq

from refssm.enclosure.algebra import conj


def cauchy_kernel(v, w, z):
    """k_l = Σ_n v_n (z_l − w_n)*/|z_l − w_n|²."""
    return [
        sum(_over(v_n, z_l - w_n) for v_n, w_n in zip(reversed(v), reversed(w), strict=True))
        for z_l in z
    ]


def cauchy_kernel_pairs(v, w, z):
    """k_l = Σ_n 2 (Re v_n (z_l − Re w_n) − Im v_n Im w_n) / ((z_l − Re w_n)² + Im² w_n)."""
    pairs = [(acb(v_n), acb(w_n)) for v_n, w_n in zip(v, w, strict=True)]
    return [sum(_of_pair(v_n, w_n, z_l) for v_n, w_n in pairs) for z_l in z]


def _of_pair(v, w, z):
    d = z - w.real
    return 2 * (v.real * d - v.imag * w.imag) / (d * d + w.imag**2)


def _over(v, d):
    return v * conj(d) / (d.real**2 + d.imag**2)


def resolvent_at_roots(v, a, *, l):
    """k_j = Σ_n v_n/(1 − a_n (cos 2πj/l − i sin 2πj/l))."""
    turns = [arb.sin_cos_pi_fmpq(fmpq(2 * j, l)) for j in range(l)]
    roots = [acb(cosine, -sine) for sine, cosine in turns]
    return [sum(_over(v_n, 1 - a_n * z) for v_n, a_n in zip(v, a, strict=True)) for z in roots]
