"""HiPPO's (A, B) under short names, for tests of memories."""

import refssm


def legs(n):
    """Scaled Legendre (LegS)."""
    return refssm.hippo_legs(n=n)


def legt(n, window=1.0):
    """Translated Legendre (LegT)."""
    return refssm.hippo_legt(n=n, window=window)


def lmu(n, window=1.0):
    """Legendre memory unit (LMU)."""
    return refssm.hippo_lmu(n=n, window=window)


def lagt(n, alpha=0.0, beta=1.0):
    """Translated Laguerre (LagT)."""
    return refssm.hippo_lagt(n=n, alpha=alpha, beta=beta)


def fourier(n, window=1.0, ends=2):
    """Sliding Fourier window: ends = 2 uses the mean of the ends, ends = 1 is the naive form."""
    make = refssm.hippo_fourier if ends == 2 else refssm.hippo_fourier_naive
    return make(n=n, window=window)


SLIDING = {"legt": legt, "lmu": lmu, "lagt": lagt, "fourier": fourier}
