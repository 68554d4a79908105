# pyright: reportMissingImports=false
"""transformers' Mamba without its CUDA kernels: the scan, the convolution, and a step of each.

These are the functions that MambaMixer falls back to; FalconMamba, Jamba and Zamba have copies of
them. The scans cast to float32.
"""

import torch
from transformers.models.mamba.modeling_mamba import (
    causal_conv1d_fn,
    causal_conv1d_update,
    mamba_selective_scan,
    mamba_selective_state_update,
)

from refssm.testing import implements

F4 = ("float32",)
REAL = ("float32", "float64")


@implements(
    "selective_scan",
    framework="torch",
    vjp=True,
    dtypes=F4,
    layout="b d l, b d l, d n, b n l, b n l -> b d l",
)
def selective_scan(u, dt, A, B, C):
    """mamba_selective_scan, a loop over time."""
    return mamba_selective_scan(u, dt, A, B, C)


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=F4,
    layout="b d l, b d l, d n, b n l, b n l, d, b d l, d -> b d l",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """mamba_selective_scan with bias, softplus, skip connection and gate."""
    return mamba_selective_scan(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements(
    "selective_step",
    framework="torch",
    dtypes=F4,
    layout="b d, b d, d n, b n, b n, b d n -> b d, b d n",
)
def selective_step(u, dt, A, B, C, x):
    """mamba_selective_state_update, which overwrites the old state with the new one."""
    x = x.clone()
    return mamba_selective_state_update(x, u, dt, A, B, C), x


@implements(
    "mamba_step",
    framework="torch",
    dtypes=F4,
    layout="b d, b d, d n, b n, b n, d, b d, d, b d n -> b d, b d n",
)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """mamba_selective_state_update with bias, softplus, skip connection and gate."""
    x = x.clone()
    y = mamba_selective_state_update(x, u, dt, A, B, C, D, dt_bias, dt_softplus=True, z=z)
    return y, x


@implements(
    "short_convolution", framework="torch", vjp=True, dtypes=REAL, layout="b d l, d t -> b d l"
)
def short_convolution(u, k):
    """causal_conv1d_fn: a Conv1d, whose weights are the taps in reverse order."""
    return causal_conv1d_fn(u, torch.flip(k, (-1,)))


@implements(
    "short_convolution_stateful",
    framework="torch",
    dtypes=REAL,
    layout="b d l, d t, b d t -> b d l, b d t",
)
def short_convolution_stateful(u, k, s0):
    """causal_conv1d_update, which overwrites the stored inputs with the last ones."""
    s = s0.clone()
    return causal_conv1d_update(u, s, torch.flip(k, (-1,))), s


@implements(
    "short_convolution_step",
    framework="torch",
    dtypes=REAL,
    layout="b d, d t, b d t -> b d, b d t",
)
def short_convolution_step(u, k, s):
    """causal_conv1d_update for one input, as in decoding."""
    y, s = short_convolution_stateful(u[..., None], k, s)
    return y[..., 0], s
