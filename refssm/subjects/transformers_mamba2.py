# pyright: reportMissingImports=false
"""transformers' Mamba-2 without its CUDA kernels: the scan by chunks and a step.

These are the functions that Mamba2Mixer falls back to; Bamba, FalconH1, GraniteMoeHybrid,
Nemotron-H and Zamba2 have copies of them. They cast to float32. Decays are e^{A dt} with one A per
head, and inputs are x dt. The scan is judged in these arguments, the step with A = log_a, dt = 1.
Heads are numbered group by group. The last chunk is padded, and a chunk needs the square of its
length for each head: a chunk of 4096 steps takes a minute even for short sequences, and no
configuration uses it.
"""

import torch
from transformers.models.mamba2.modeling_mamba2 import (
    mamba2_chunk_scan,
    mamba2_selective_state_update,
)

from refssm.adapters import dt_and_A
from refssm.testing import implements

F4 = ("float32",)
LONGEST = 256  # longest chunk, as in Mamba2Config


SCAN = "b l g h p, b l g h, g h, b l g n, b l g n"


@implements(
    "ssd_chunked",
    framework="torch",
    vjp=True,
    dtypes=F4,
    adapters=dt_and_A(),
    layout=f"{SCAN} -> b l g h p",
)
def ssd_chunked(x, dt, A, B, C, *, chunk):
    """mamba2_chunk_scan from a zero state."""
    _not_too_long(chunk)
    heads, steps, rates = x.flatten(2, 3), dt.flatten(2, 3), A.flatten()
    return mamba2_chunk_scan(heads, steps, rates, B, C, chunk).reshape(x.shape)


@implements(
    "ssd_chunked_stateful",
    framework="torch",
    vjp=True,
    dtypes=F4,
    adapters=dt_and_A(),
    layout=f"{SCAN}, b g h p n -> b l g h p, b g h p n",
)
def ssd_chunked_stateful(x, dt, A, B, C, S0, *, chunk):
    """mamba2_chunk_scan from S0, with the last state."""
    _not_too_long(chunk)
    heads, steps, rates, states = x.flatten(2, 3), dt.flatten(2, 3), A.flatten(), S0.flatten(1, 2)
    carried = {"initial_states": states, "return_final_states": True}
    y, S = mamba2_chunk_scan(heads, steps, rates, B, C, chunk, **carried)
    return y.reshape(x.shape), S.reshape(S0.shape)


def _not_too_long(chunk):
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, which are filled up")


@implements(
    "ssd_step",
    framework="torch",
    dtypes=F4,
    layout="b g h p, b g h, b g n, b g n, b g h p n -> b g h p, b g h p n",
)
def ssd_step(x, log_a, B, C, S):
    """mamba2_selective_state_update, which overwrites the old state with the new one."""
    heads, states = x.flatten(1, 2), S.flatten(1, 2).clone()
    decays = log_a.flatten(1, 2)[..., None, None].expand(states.shape)
    y = mamba2_selective_state_update(states, heads, torch.ones_like(heads), decays, B, C)
    return y.reshape(x.shape), states.reshape(S.shape)
