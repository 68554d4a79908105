# pyright: reportMissingImports=false
"""hippo-code: matrices of measures, their discretization, projections, and unrolled recurrences.

Its windows have length 1. A module for a projection has the matrices of its measure, so cases get
them.
"""

from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import numpy as np
import torch

from refssm.subjects.clones import module
from refssm.testing import implements

op = module("hippo-code", "model.op")
hippo = module("hippo-code", "model.hippo")
opcell = module("hippo-code", "model.opcell")
unroll = module("hippo-code", "model.unroll")

LONGEST = 2048
FLOATS = {"framework": "torch", "dtypes": ("float32",)}
UNROLLED = {"framework": "torch", "vjp": True, "layout": "n n, l b n -> l b n"}
UNROLLED_FROM = {**UNROLLED, "layout": "n n, l b n, b n -> l b n"}


def window_of_one(x):
    """The case with a window of length 1."""
    return {**x, "window": 1.0}


def _measure(name, n, **options):
    A, B = op.transition(name, n, **options)
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


def of_legs(x):
    """The case with the matrices of LegS and one input."""
    kind, n = x["A"].dtype, x["A"].shape[-1]
    A, B = op.transition("legs", n)
    B = np.broadcast_to(B, (*x["B"].shape[:-1], 1))
    return {**x, "A": np.broadcast_to(A, x["A"].shape).astype(kind), "B": B.astype(kind)}


RULE = {**FLOATS, "only": of_legs, "layout": "n n, n m, -> n n, n m"}


@cache
def manual(n):
    """LegSAdaptiveTransitionManual, which prints its matrices."""
    with redirect_stdout(StringIO()):
        return op.LegSAdaptiveTransitionManual(n)


def _matrices(rule, n, dt):
    """The matrices that a step applies: Ā from steps without input, B̄ from one with input 1."""
    step = getattr(manual(n), rule)
    A_bar = step(dt, torch.eye(n), torch.zeros(n), precompute=False)
    return A_bar.T, step(dt, torch.zeros(n), torch.ones(()), precompute=False)[:, None]


@implements("discretize_euler", **RULE)
def discretize_euler(A, B, dt):
    """forward_diff."""
    return _matrices("forward_diff", len(A), dt)


@implements("discretize_backward", **RULE)
def discretize_backward(A, B, dt):
    """backward_diff."""
    return _matrices("backward_diff", len(A), dt)


@implements("discretize_bilinear", **RULE)
def discretize_bilinear(A, B, dt):
    """bilinear."""
    return _matrices("bilinear", len(A), dt)


def of_lmu(x):
    """The case with the matrices of the LMU."""
    kind, n = x["A"].dtype, x["A"].shape[-1]
    A, B = hippo.transition("lmu", n)
    A, B = np.broadcast_to(A, x["A"].shape), np.broadcast_to(B[:, 0], x["B"].shape)
    return {**x, "A": A.astype(kind), "B": B.astype(kind)}


@implements("hippo_project", layout="n n, n, l b, -> l b n", only=of_lmu, **FLOATS)
def hippo_project(A, B, u, dt):
    """HiPPO_LegT(N, dt, "zoh").forward."""
    return hippo.HiPPO_LegT(len(B), float(dt), "zoh")(u)


@cache
def cell(n):
    """The memory of one LegS cell, with zero-order hold."""
    return opcell.LegendreScaleCell(1, 1, 1, n, max_length=LONGEST, discretization="zoh")


@implements("hippo_project_legs", layout="l b -> l b n", vjp=True, **FLOATS)
def hippo_project_legs(u, *, n):
    """LegendreScaleCell.update_memory, step after step.

    The cell takes the first input as the first state, which is the memory of the whole past;
    HiPPO_LegS would start from rest at t = 1.
    """
    memory, states = u.new_zeros(u.shape[1], 1, n), []
    for k, step in enumerate(u):
        memory = cell(n).update_memory(memory, step[:, None], k)
        states.append(memory[:, 0])
    return torch.stack(states) if states else u.new_zeros(*u.shape, n)


@implements("dense_scan", **UNROLLED)
def unroll_recursive(A, b):
    """parallel_unroll_recursive."""
    return unroll.parallel_unroll_recursive(A, b)


@implements("dense_scan_from", **UNROLLED_FROM)
def unroll_recursive_from(A, b, x0):
    """variable_unroll_matrix(variable=False), with one matrix."""
    return unroll.variable_unroll_matrix(A, b, x0, variable=False)


@implements("dense_scan", **UNROLLED)
def unroll_iterative(A, b):
    """parallel_unroll_iterative."""
    return unroll.parallel_unroll_iterative(A, b)


@implements("dense_scan_from", **UNROLLED_FROM)
def unroll_iterative_from(A, b, x0):
    """variable_unroll(variable=False), with one matrix."""
    return unroll.variable_unroll(A, b, x0, variable=False)
