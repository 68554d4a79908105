"""Oracles for refssm.norms."""

from mpmath import mp


def rms_norm_gated(x, z, w, *, eps):
    """x/√(mean x² + ε) · w z/(1 + e^{−z})."""
    r = _root_mean_square(x, eps)
    return [a / r * b * _silu(c) for a, b, c in zip(x, w, z, strict=True)]


def gated_rms_norm(x, z, w, *, eps, group):
    """s/√(mean s² + ε) · w with s = x z/(1 + e^{−z}), each group of channels by itself."""
    s, y = [a * _silu(c) for a, c in zip(x, z, strict=True)], []
    for start in range(0, len(s), group):
        part = s[start : start + group]
        r = _root_mean_square(part, eps)
        y += [a / r * b for a, b in zip(part, w[start : start + group], strict=True)]
    return y


def l2_norm(x, *, eps):
    """x/√(Σ x² + ε)."""
    length = mp.sqrt(mp.fsum(a * a for a in x) + mp.mpf(eps))
    return [a / length for a in x]


def _root_mean_square(x, eps):
    return mp.sqrt(mp.fsum(a * a for a in x) / len(x) + mp.mpf(eps)) if x else mp.one


def _silu(z):
    return z / (1 + mp.exp(-z))
