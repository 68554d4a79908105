# pyright: reportMissingImports=false
"""hippo-code: the steps of LegSAdaptiveTransitionManual, as the matrices that they apply."""

from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import numpy as np
import torch

from refssm.subjects.clones import module
from refssm.testing import implements

op = module("hippo-code", "model.op")


def of_legs(x):
    """The case with the matrices of LegS and one input."""
    kind, n = x["A"].dtype, x["A"].shape[-1]
    A, B = op.transition("legs", n)
    B = np.broadcast_to(B, (*x["B"].shape[:-1], 1))
    return {**x, "A": np.broadcast_to(A, x["A"].shape).astype(kind), "B": B.astype(kind)}


DECLARED = {
    "framework": "torch",
    "dtypes": ("float32",),
    "only": of_legs,
    "layout": "n n, n m, -> n n, n m",
}


@cache
def transition(n):
    """The module, which prints its matrices."""
    with redirect_stdout(StringIO()):
        return op.LegSAdaptiveTransitionManual(n)


def _matrices(rule, n, dt):
    """Ā from steps without input, B̄ from one with input 1."""
    step = getattr(transition(n), rule)
    A_bar = step(dt, torch.eye(n), torch.zeros(n), precompute=False)
    return A_bar.T, step(dt, torch.zeros(n), torch.ones(()), precompute=False)[:, None]


@implements("discretize_euler", **DECLARED)
def discretize_euler(A, B, dt):
    """forward_diff."""
    return _matrices("forward_diff", len(A), dt)


@implements("discretize_backward", **DECLARED)
def discretize_backward(A, B, dt):
    """backward_diff."""
    return _matrices("backward_diff", len(A), dt)


@implements("discretize_bilinear", **DECLARED)
def discretize_bilinear(A, B, dt):
    """bilinear."""
    return _matrices("bilinear", len(A), dt)
