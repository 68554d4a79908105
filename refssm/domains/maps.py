"""Building blocks of the maps of domains, and functions that make a whole array valid."""

import numpy as np


def turn(modulus, turns):
    """modulus · e^(2πi turns), exactly real at 0 and ½."""
    turns = turns % 1.0
    sign = np.where(turns == 0.5, -1.0, 1.0)
    exact = np.exp(2j * np.pi * np.where(turns == 0.5, 0.0, turns))
    return modulus * sign * exact


def logarithmic(low, high, a):
    """From `low` to `high`, uniform in the logarithm."""
    return low * (high / low) ** a


def compass(a, b):
    """0, ±1 or ±i, exactly; 0, ±1 where b is 0 or ½."""
    quarter = np.array([1, 1j, -1, -1j])[np.minimum((4 * b).astype(int), 3)]
    return np.where(a < 0.8, quarter, 0)


def products_bounded(a):
    """Scale a until |Π a| ≤ 2^60 over any span of time: float32 then does not overflow."""
    with np.errstate(divide="ignore"):
        bits = np.maximum(np.log2(np.abs(a)), -1e4)
    total = np.cumsum(bits, axis=-2)
    lowest = np.minimum(np.minimum.accumulate(total, axis=-2), 0)
    growth = np.max(total - lowest, axis=-2, keepdims=True, initial=0)
    excess = bits * (1 - np.minimum(1, 60 / np.maximum(growth, 1)))
    return a * 2.0 ** np.where(a == 0, 0.0, -excess)


def stable(A):
    """Shift A left by an integer until no eigenvalue is right of the imaginary axis.

    First, rows off the diagonal are scaled, by powers of two, to at most 8 times (|diagonal entry|
    + 1): a triangle much larger than its diagonal has no inverse in double precision.
    """
    if A.size == 0:
        return A
    I = np.eye(A.shape[-1])
    off = np.abs(A * (1 - I)).sum(-1, keepdims=True)
    allowed = 8 * (np.abs(A * I).sum(-1, keepdims=True) + 1)
    A = A * np.where(I > 0, 1, 0.5 ** np.ceil(np.log2(np.maximum(off / allowed, 1))))
    abscissa = np.linalg.eigvals(A).real.max(-1)
    shift = np.where(abscissa > 1e-12, np.ceil(abscissa), 0)[..., None, None]
    return A - shift * I


def contracting(A):
    """Halve A until no row sums to more than 1 in modulus, so its powers stay bounded.

    The moduli of e^{iφ} are 1 up to rounding, so a rounding error above 1 does not count.
    """
    if A.size == 0:
        return A
    largest = np.abs(A).sum(-1).max(-1)[..., None, None]
    return A * 0.5 ** np.ceil(np.log2(np.maximum(largest, 1)) - 2.0**-40)


def shrunk(A):
    """`contracting`, then scaled to row sums of at most 1 − 2^-10: its powers decay."""
    if A.size == 0:
        return A
    A, most = contracting(A), 1 - 2.0**-10
    largest = np.abs(A).sum(-1).max(-1)[..., None, None]
    return A * np.where(largest > most, most / np.maximum(largest, 1), 1)


def settling(A, rate=0.0):
    """Shift A left by an integer until e^{tA} does not increase the largest modulus of any state.

    The real part of each diagonal entry is then at most −`rate` − (the moduli in the rest of its
    row).
    """
    if A.size == 0:
        return A
    I = np.eye(A.shape[-1])
    excess = ((A * I).sum(-1).real + np.abs(A * (1 - I)).sum(-1)).max(-1) + rate
    return A - np.maximum(np.ceil(excess), 0)[..., None, None] * I


def damped(A):
    """Shift A left by an integer until e^{tA} damps every state at a rate of at least 1/16."""
    return settling(A, 1 / 16)


def ringing(A):
    """The skew-Hermitian part of A, minus 1/8, plus the rest scaled so that the decay is ≥ 1/16.

    Modes that ring longer than the inverse of their frequency differences are nearly orthogonal:
    all of them matter, and Hankel singular values do not fall below their own error.
    """
    if A.size == 0:
        return A
    adjoint = A.conj().swapaxes(-1, -2)
    rest = (A + adjoint) / 2
    size = np.abs(rest).sum(-1).max(-1)[..., None, None]
    return (A - adjoint) / 2 + rest / (16 * np.maximum(size, 1)) - np.eye(A.shape[-1]) / 8
