# pyright: reportMissingImports=false
"""Mamba's Triton kernels in the interpreter: the chunked scan of Mamba-2, and the step."""

import torch

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SELECTIVE, few
from refssm.testing import implements

ssd = module("mamba", "mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
step = module("mamba", "mamba_ssm.ops.triton.selective_state_update").selective_state_update
STEP = "b d, b d, d n, b n, b n"


def one_state(x):
    """The case with one state, because Mamba-2 has one rate for all, and at most 70 steps."""
    return few(SELECTIVE, b=2, d=3, l=70, n=1)(x)


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=("float32",),
    only=one_state,
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """mamba_chunk_scan_combined with one channel in a head, 32 steps in a chunk."""
    B, C, more = B[:, :, None], C[:, :, None], (D, z[..., None], dt_bias)
    return ssd(u[..., None], dt, A[:, 0], B, C, 32, *more, dt_softplus=True)[..., 0]


@implements(
    "mamba_step",
    framework="torch",
    dtypes=("float32",),
    layout=f"{STEP}, d, b d, d, b d n -> b d, b d n",
)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update, which overwrites the old state with the new one."""
    x = x.clone()
    return step(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


@implements(
    "selective_step", framework="torch", dtypes=("float32",), layout=f"{STEP}, b d n -> b d, b d n"
)
def selective_step(u, dt, A, B, C, x):
    """selective_state_update with D and dt_bias of 0, without which it raises TypeError."""
    x, zero = x.clone(), torch.zeros_like(A[:, 0])
    return step(x, u, dt, A, B, C, zero, None, zero), x
