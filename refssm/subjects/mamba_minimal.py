# pyright: reportMissingImports=false
"""mamba-minimal's `MambaBlock`: its scan, a loop over time in PyTorch, and the whole block."""

from functools import cache

import torch.nn.functional as F
from torch.func import functional_call

from refssm.subjects.clones import module
from refssm.subjects.mamba_block import F4, LAYER, REAL, TIME_FIRST, sizes_of, weights_of
from refssm.testing import implements

model = module("mamba-minimal", "model")


@implements("mamba_scan", vjp=True, layout=TIME_FIRST, **REAL)
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


@implements("mamba_layer", vjp=True, layout=LAYER, **F4)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaBlock.forward; torch.nn.Linear has the transposed matrix, Conv1d the taps reversed."""
    parameters = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    return functional_call(block(*sizes_of(*parameters)), weights_of(*parameters), (u,))
