# pyright: reportMissingImports=false
"""minGRU-pytorch: `minGRU.forward` without its projections.

The layer's input is candidates and gates side by side; its output projection is the identity. A
call of one step computes with z itself, longer ones with logarithms.
"""

from types import SimpleNamespace

import torch

from refssm.subjects.clones import module
from refssm.testing import implements

layers = module("minGRU-pytorch", "minGRU_pytorch.minGRU")
IDENTITY = torch.nn.Identity()
SELF = SimpleNamespace(to_hidden_and_gate=IDENTITY, to_out=IDENTITY)
DECLARED = {"framework": "torch", "vjp": True, "dtypes": ("float32", "float64")}


def computed(k, h, before=None):
    """minGRU.forward of a layer without projections."""
    return layers.minGRU.forward(SELF, torch.cat([h, k], -1), before)


def positive(x):
    """The case with a positive state: its logarithm is taken."""
    return {**x, "x0": abs(x["x0"]).clip(min=0.125)}


@implements("min_gru", layout="b l n, b l n -> b l n", **DECLARED)
def min_gru(k, h):
    """minGRU.forward from rest."""
    return computed(k, h)


@implements("min_gru_from", layout="b l n, b l n, b n -> b l n", only=positive, **DECLARED)
def min_gru_from(k, h, x0):
    """minGRU.forward with prev_hidden, which is positive."""
    return computed(k, h, x0[:, None])


@implements("min_gru_step", layout="b n, b n, b n -> b n", **DECLARED)
def min_gru_step(k, h, x):
    """minGRU.forward of one step with prev_hidden."""
    return computed(k[:, None], h[:, None], x[:, None])[:, 0]
