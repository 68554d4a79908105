# pyright: reportMissingImports=false
"""s4's HiPPO matrices, and their normal plus low-rank form completed by its conjugate half.

LegT and Fourier have a window of 2 there, LMU one of 1.
"""

import torch

from refssm.subjects.clones import module
from refssm.testing import implements

hippo = module("s4", "src.models.hippo.hippo")


def matrices(measure, n, **options):
    """A and B of transition."""
    A, B = hippo.transition(measure, n, **options)
    return A, B[:, 0]


def completed(measure, rank, n):
    """w, P, B and V of nplr in double precision without clipping, and their conjugates."""
    found = hippo.nplr(measure, n, rank, dtype=torch.double, B_clip=None)
    w, P, B, V = (torch.cat([x, x.conj()], -1).resolve_conj().numpy() for x in found)
    return w, P.T, B, V


def of_window_1(x):
    """The case with a window of 1."""
    return {**x, "window": 1.0}


def of_window_2(x):
    """The case with a window of 2."""
    return {**x, "window": 2.0}


def with_pairs(x):
    """The case if it has pairs of modes: an even number, 4 at least; with a window of 2."""
    x = {**x, "window": 2.0} if "window" in x else x
    return x if x["n"] > 3 and x["n"] % 2 == 0 else None


@implements("hippo_legs")
def hippo_legs(*, n):
    """transition("legs", N)."""
    return matrices("legs", n)


@implements("hippo_legt", only=of_window_2)
def hippo_legt(*, n, window):
    """transition("legt", N)."""
    return matrices("legt", n)


@implements("hippo_lmu", only=of_window_1)
def hippo_lmu(*, n, window):
    """transition("lmu", N)."""
    return matrices("lmu", n)


@implements("hippo_lagt")
def hippo_lagt(*, n, alpha, beta):
    """transition("glagt", N)."""
    return matrices("glagt", n, alpha=alpha, beta=beta)


@implements("hippo_fourier", only=of_window_2)
def hippo_fourier(*, n, window):
    """transition("fourier", N)."""
    return matrices("fourier", n)


@implements("nplr_legs", only=with_pairs)
def nplr_legs(*, n):
    """nplr("legs", N)."""
    return completed("legs", 1, n)


@implements("nplr_legt", only=with_pairs)
def nplr_legt(*, n, window):
    """nplr("legt", N, 2)."""
    return completed("legt", 2, n)


@implements("nplr_fourier", only=with_pairs)
def nplr_fourier(*, n, window):
    """nplr("fourier", N)."""
    return completed("fourier", 1, n)
