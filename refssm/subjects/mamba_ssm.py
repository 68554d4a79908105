# pyright: reportMissingImports=false
"""mamba-ssm's references in PyTorch, with which its own tests compare its kernels.

The scan, which casts to float32, its chunked form by the paper's listing, and a step. The kernels
themselves are not judged here. Importing the references needs Triton and the compiled extension,
though they call neither.
"""

import torch
from mamba_ssm.modules.ssd_minimal import ssd_minimal_discrete
from mamba_ssm.ops.selective_scan_interface import selective_scan_ref
from mamba_ssm.ops.triton.selective_state_update import selective_state_update_ref

from refssm.subjects.mamba_block import (
    BLOCK_SCAN,
    BLOCK_STEPPED,
    CHUNKED,
    CHUNKED_STATEFUL,
    F4,
    REAL,
    SCAN,
    STEPPED,
)
from refssm.testing import implements

LONGEST = 256  # longest chunk, as in Mamba2's configuration


@implements("selective_scan", vjp=True, layout=SCAN, **F4)
def selective_scan(u, dt, A, B, C):
    """selective_scan_ref, a loop over time."""
    if u.shape[-1] == 0:
        raise NotImplementedError("it stacks the steps that there are: one at least")
    return selective_scan_ref(u, dt, A, B, C)


@implements("mamba_scan", vjp=True, layout=BLOCK_SCAN, **F4)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """selective_scan_ref with bias, softplus, skip connection and gate."""
    if u.shape[-1] == 0:
        raise NotImplementedError("it stacks the steps that there are: one at least")
    return selective_scan_ref(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements("selective_step", layout=STEPPED, **REAL)
def selective_step(u, dt, A, B, C, x):
    """selective_state_update_ref, which overwrites the old state with the new one."""
    x = x.clone()
    return selective_state_update_ref(x, u, dt, A, B, C), x


@implements("mamba_step", layout=BLOCK_STEPPED, **REAL)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """selective_state_update_ref with bias, softplus, skip connection and gate."""
    x = x.clone()
    return selective_state_update_ref(x, u, dt, A, B, C, D, z, dt_bias, dt_softplus=True), x


@implements("ssd_chunked", vjp=True, layout=f"{CHUNKED} -> b l g h p", **REAL)
def ssd_chunked(x, log_a, B, C, *, chunk):
    """ssd_minimal_discrete from a zero state."""
    return _by_heads(x, log_a, B, C, chunk)[0].reshape(x.shape)


@implements("ssd_chunked_stateful", vjp=True, layout=CHUNKED_STATEFUL, **REAL)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """ssd_minimal_discrete from S0, with the last state; its first state has an axis of chunks."""
    y, S = _by_heads(x, log_a, B, C, chunk, S0.flatten(1, 2)[:, None])
    return y.reshape(x.shape), S.reshape(S0.shape)


def _by_heads(x, log_a, B, C, chunk, *state):
    """Repeat B and C for each head; pad the last chunk with zeros, which keep the state."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    l, h = x.shape[1], x.shape[3]
    if l == 0:
        raise NotImplementedError("the listing has no chunks of nothing")
    B, C = (v.repeat_interleave(h, 2) for v in (B, C))
    filled = [_filled(v, -l % chunk) for v in (x.flatten(2, 3), log_a.flatten(2, 3), B, C)]
    y, S = ssd_minimal_discrete(*filled, chunk, *state)
    return y[:, :l], S


def _filled(x, more):
    return torch.cat([x, x.new_zeros(x.shape[0], more, *x.shape[2:])], 1)
