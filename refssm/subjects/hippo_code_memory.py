# pyright: reportMissingImports=false
"""hippo-code: the modules HiPPO_LegT and HiPPO_LegS, and the cell of LegS with zero-order hold.

A module has the matrices of its measure, so cases get them. HiPPO_LegS starts from rest at t = 1;
the cell takes the first input as the first state, which is the memory of the whole past.
"""

from functools import cache

import numpy as np
import torch

from refssm.subjects.clones import module
from refssm.testing import implements

hippo = module("hippo-code", "model.hippo")
opcell = module("hippo-code", "model.opcell")

DECLARED = {"framework": "torch", "dtypes": ("float32",)}
LONGEST = 2048


def of_lmu(x):
    """The case with the matrices of the LMU."""
    kind, n = x["A"].dtype, x["A"].shape[-1]
    A, B = hippo.transition("lmu", n)
    A, B = np.broadcast_to(A, x["A"].shape), np.broadcast_to(B[:, 0], x["B"].shape)
    return {**x, "A": A.astype(kind), "B": B.astype(kind)}


@implements("hippo_project", layout="n n, n, l b, -> l b n", only=of_lmu, **DECLARED)
def hippo_project(A, B, u, dt):
    """HiPPO_LegT(N, dt, "zoh").forward."""
    return hippo.HiPPO_LegT(len(B), float(dt), "zoh")(u)


@cache
def cell(n):
    """The memory of one LegS cell."""
    return opcell.LegendreScaleCell(1, 1, 1, n, max_length=LONGEST, discretization="zoh")


@implements("hippo_project_legs", layout="l b -> l b n", vjp=True, **DECLARED)
def hippo_project_legs(u, *, n):
    """LegendreScaleCell.update_memory, step after step."""
    memory, states = u.new_zeros(u.shape[1], 1, n), []
    for k, step in enumerate(u):
        memory = cell(n).update_memory(memory, step[:, None], k)
        states.append(memory[:, 0])
    return torch.stack(states) if states else u.new_zeros(*u.shape, n)
