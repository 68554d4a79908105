# pyright: reportMissingImports=false
"""mamba-minimal's `MambaBlock`: its scan, a loop over time in PyTorch, and the whole block."""

from functools import cache

import torch
import torch.nn.functional as F
from torch.func import functional_call

from refssm.subjects.clones import module
from refssm.testing import implements

model = module("mamba-minimal", "model")


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float64"),
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    no_block = None
    y = model.MambaBlock.selective_scan(no_block, u, F.softplus(dt + dt_bias), A, B, C, D)
    return y * F.silu(z)


@cache
def block(h, e, t, r, n):
    """A block of these sizes; the weights come with each call."""
    sizes = model.ModelArgs(d_model=h, n_layer=1, vocab_size=8, d_state=n, dt_rank=r, d_conv=t)
    sizes.d_inner = e
    return model.MambaBlock(sizes)


@implements(
    "mamba_layer",
    framework="torch",
    vjp=True,
    dtypes=("float32",),
    layout="b l h, h 2e, e t, e, e r, e n, e n, r e, e, e n, e, e h -> b l h",
)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaBlock.forward; torch.nn.Linear has the transposed matrix, Conv1d the taps reversed."""
    weights = {
        "in_proj.weight": W_in.T,
        "conv1d.weight": torch.flip(k, (-1,))[:, None, :],
        "conv1d.bias": k_bias,
        "x_proj.weight": torch.cat([W_low, W_B, W_C], dim=-1).T,
        "dt_proj.weight": W_dt.T,
        "dt_proj.bias": dt_bias,
        "A_log": log_rate,
        "D": D,
        "out_proj.weight": W_out.T,
    }
    sizes = W_in.shape[0], *k.shape, W_dt.shape[0], log_rate.shape[-1]
    return functional_call(block(*sizes), weights, (u,))
