# pyright: reportMissingImports=false
"""hippo-code: the matrices of model.op.transition. Its windows have length 1."""

from refssm.subjects.clones import module
from refssm.testing import implements

transition = module("hippo-code", "model.op").transition


def window_of_one(x):
    """The case with a window of length 1."""
    return {**x, "window": 1.0}


def _measure(name, n, **options):
    A, B = transition(name, n, **options)
    return A, B[:, 0]


@implements("hippo_legs")
def hippo_legs(*, n):
    """transition("legs")."""
    return _measure("legs", n)


@implements("hippo_legt", only=window_of_one)
def hippo_legt(*, n, window):
    """transition("legt")."""
    return _measure("legt", n)


@implements("hippo_lmu", only=window_of_one)
def hippo_lmu(*, n, window):
    """transition("lmu")."""
    return _measure("lmu", n)


@implements("hippo_lagt")
def hippo_lagt(*, n, alpha, beta):
    """transition("glagt")."""
    return _measure("glagt", n, alpha=alpha, beta=beta)
