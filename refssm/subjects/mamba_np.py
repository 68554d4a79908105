"""mamba.np's `MambaBlock` in NumPy: its scan, its convolution, and the whole block."""

from types import SimpleNamespace

import numpy as np

from refssm.subjects.clones import module
from refssm.testing import implements

mamba = module("mamba.np", "mamba")


@implements(
    "mamba_scan",
    dtypes=("float32", "float64"),
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with its softplus before it and its silu as a gate after it."""
    no_block = None
    steps = mamba.softplus(dt + dt_bias)
    return mamba.MambaBlock.selective_scan(no_block, u, steps, A, B, C, D) * mamba.silu(z)


@implements("short_convolution", dtypes=("float32", "float64"), layout="b l d, d t -> b l d")
def short_convolution(u, k):
    """MambaConv1d without a bias: its weights are the taps in reverse order."""
    return mamba.MambaConv1d(k[:, None, ::-1], None)(u)


@implements(
    "mamba_layer",
    dtypes=("float32", "float64"),
    layout="b l h, h 2e, e t, e, e r, e n, e n, r e, e, e n, e, e h -> b l h",
)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaBlock, whose Linear has the transposed matrix and MambaConv1d the taps reversed."""
    block = mamba.MambaBlock(
        in_proj=mamba.Linear(W_in.T, None),
        conv1d=mamba.MambaConv1d(k[:, None, ::-1], k_bias),
        x_proj=mamba.Linear(np.concatenate([W_low, W_B, W_C], -1).T, None),
        dt_proj=mamba.Linear(W_dt.T, dt_bias),
        A_log=log_rate,
        D=D,
        out_proj=mamba.Linear(W_out.T, None),
        args=SimpleNamespace(d_inner=k.shape[0], dt_rank=W_dt.shape[0]),
    )
    return block(u)
