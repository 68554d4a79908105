"""mamba.np's `MambaBlock`, the whole block, in NumPy."""

from types import SimpleNamespace

import numpy as np

from refssm.subjects.clones import module
from refssm.testing import implements

mamba = module("mamba.np", "mamba")


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
