# pyright: reportMissingImports=false
"""mamba.py: `pscan`, Blelloch's scan with a hand-written gradient, and `MambaBlock`.

The block's scan is there in parallel and as a loop over time; the whole block over a sequence, and
one step after another from its cache.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import functional_call

from refssm.subjects.clones import module
from refssm.subjects.mamba_block import (
    F4,
    LAYER,
    LAYER_STATEFUL,
    REAL,
    TIME_FIRST,
    sizes_of,
    weights_of,
)
from refssm.testing import implements

pscan = module("mamba.py", "mambapy.pscan").pscan
mamba = module("mamba.py", "mambapy.mamba")

STEPS = 16  # a step is a call of the whole module


@implements("linear_scan", framework="torch", vjp=True, layout="b l n 1, b l n 1 -> b l n 1")
def linear_scan(a, b):
    """pscan(A, X) of (B, L, D, N)."""
    return pscan(a, b)


@implements("mamba_scan", layout=TIME_FIRST, vjp=True, **REAL)
def parallel_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    no_block = None
    y = mamba.MambaBlock.selective_scan(no_block, u, F.softplus(dt + dt_bias), A, B, C, D)
    return y * F.silu(z)


@implements("mamba_scan", layout=TIME_FIRST, vjp=True, **REAL)
def sequential_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan_seq, with the softplus before it and the gate after it."""
    sizes = SimpleNamespace(d_inner=A.shape[0], d_state=A.shape[1])
    block = SimpleNamespace(config=sizes)
    y = mamba.MambaBlock.selective_scan_seq(block, u, F.softplus(dt + dt_bias), A, B, C, D)
    return y * F.silu(z)


def few_steps(x):
    """The case cut to its first steps, with a second tap of 0 if it has one, for which it fails."""
    x = {**x, "u": x["u"][..., :STEPS, :]}
    if x["k"].shape[-1] == 1:
        # a law passes on the state of an earlier call, which has the second tap already
        x |= {name: np.repeat(x[name], 2, -1) for name in ("k", "s0") if x[name].shape[-1] == 1}
        x["k"] = x["k"] * np.array([1, 0], x["k"].dtype)
    return x


class Step(torch.nn.Module):
    """MambaBlock.step as a module's forward, so that functional_call sets the weights."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x, cache):
        """One step."""
        return self.block.step(x, cache)


@cache
def block(h, e, t, r, n):
    """A block of these sizes; the weights come with each call."""
    sizes = mamba.MambaConfig(d_model=h, n_layers=1, dt_rank=r, d_state=n, d_conv=t)
    sizes.d_inner = e
    return mamba.MambaBlock(sizes)


@implements("mamba_layer", layout=LAYER, vjp=True, **F4)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaBlock.forward."""
    parameters = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    return functional_call(block(*sizes_of(*parameters)), weights_of(*parameters), (u,))


@implements(
    "mamba_layer_stateful",
    layout=LAYER_STATEFUL,
    only=few_steps,
    **F4,
)
def mamba_layer_stateful(
    u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
):
    """MambaBlock.step, one after another; its cache has the last inputs but the oldest."""
    parameters = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    step = Step(block(*sizes_of(*parameters)))
    named = {f"block.{name}": weight for name, weight in weights_of(*parameters).items()}
    y, oldest, cache = [u[:, :0]], s0[..., :1], (x0, s0[..., 1:])
    for row in u.unbind(1):
        oldest = cache[1][..., :1]
        out, cache = functional_call(step, named, (row, cache))
        y.append(out[:, None])
    return torch.cat(y, dim=1), torch.cat([oldest, cache[1]], dim=-1), cache[0]
