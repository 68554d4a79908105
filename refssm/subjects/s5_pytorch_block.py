# pyright: reportMissingImports=false
"""s5-pytorch: its module S5SSM with the gate of the published S5, g σ(g W + b), g = GELU(y).

Its own S5Block puts LayerNorm, residual connections and GEGLU around S5SSM, which the published
layer does not have: it is another layer. S5SSM returns Re C x for all modes of a system, where
refssm has one mode of each conjugate pair, so 2C is passed. It casts B to complex64.
"""

from functools import cache

import torch
from s5.s5_model import S5SSM
from torch.func import functional_call
from torch.nn.functional import gelu

from refssm.testing import implements

PARAMETERS = "n, n, n h, h n, h, h h, h"
DECLARED = {"framework": "torch", "dtypes": ("complex64",)}


@cache
def module(h, n):
    """S5SSM of these sizes; the weights come with each call."""
    w, V = torch.zeros(n, dtype=torch.complex64), torch.eye(n, dtype=torch.complex64)
    return S5SSM(w, V, V, h, n, 1e-3, 1e-1, bcInit="dense")


def _called(signals, w, log_dt, B, C, D, W, b, **options):
    """The gated output of each signal; `options` go to S5SSM."""
    weights = {"Lambda": w, "log_step": log_dt, "B": torch.view_as_real(B), "C": 2 * C, "D": D}
    if signals.shape[-2] == 0:
        raise NotImplementedError("apply_ssm returns the last state: one step at least")

    def one(u):
        return functional_call(module(len(D), len(w)), weights, (u,), options)

    g = gelu(torch.stack([one(u) for u in signals]))
    return g * torch.sigmoid(g @ W + b)


@implements("s5_layer", layout=f"b l h, {PARAMETERS} -> b l h", vjp=True, **DECLARED)
def s5_layer(u, w, log_dt, B, C, D, W, b):
    """S5SSM.forward over a sequence, and the gate."""
    return _called(u, w, log_dt, B, C, D, W, b)
