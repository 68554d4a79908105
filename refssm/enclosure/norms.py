"""Enclosures for refssm.norms: the mean's n under the root multiplies ε, and σ is by tanh."""

from flint import arb

from refssm.enclosure.algebra import dot


def rms_norm_gated(x, z, w, *, eps):
    """√n x/√(Σ x² + n ε) · w z (1 + tanh z/2)/2."""
    return [b * _silu(c) * a for a, b, c in zip(_normal(x, eps), w, z, strict=True)]


def gated_rms_norm(x, z, w, *, eps, group):
    """The same without the gate, for x z (1 + tanh z/2)/2 and each group of channels."""
    s = [_silu(c) * a for a, c in zip(x, z, strict=True)]
    starts = range(0, len(s), group)
    normed = [a for i in starts for a in _normal(s[i : i + group], eps)]
    return [b * a for b, a in zip(w, normed, strict=True)]


def l2_norm(x, *, eps):
    """x (Σ x² + ε)^(−½)."""
    return [_inverse_length(x, arb(eps)) * a for a in x]


def _normal(x, eps):
    rate = _inverse_length(x, len(x) * arb(eps)) * arb(len(x)).sqrt() if x else 0
    return [rate * a for a in x]


def _inverse_length(x, floor):
    return (dot(x, x).real + floor).rsqrt()


def _silu(z):
    return z * (1 + (arb(z) / 2).tanh()) / 2
