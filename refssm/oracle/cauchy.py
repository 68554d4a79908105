"""Oracles for refssm.cauchy."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def cauchy_kernel(v, w, z):
    """k_l = Σ_n v_n / (z_l − w_n)."""
    return [mp.fsum(v_n / (z_l - w_n) for v_n, w_n in zip(v, w, strict=True)) for z_l in z]


def cauchy_kernel_pairs(v, w, z):
    """k_l = Σ_n v_n/(z_l − w_n) + v_n*/(z_l − w_n*)."""
    pairs = [*zip(v, w, strict=True)]
    return [
        mp.fsum(v_n / (z_l - w_n) + mp.conj(v_n) / (z_l - mp.conj(w_n)) for v_n, w_n in pairs)
        for z_l in z
    ]


def resolvent_at_roots(v, a, *, l):
    """k_j = Σ_n v_n / (1 − a_n e^{−2πij/l})."""
    omega = [mp.expjpi(-mp.mpf(2 * j) / l) for j in range(l)]
    return [mp.fsum(v_n / (1 - a_n * z) for v_n, a_n in zip(v, a, strict=True)) for z in omega]
