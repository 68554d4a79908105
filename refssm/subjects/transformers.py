# pyright: reportMissingImports=false
"""transformers' Mamba and Mamba-2 without their CUDA kernels: scans, steps, and the whole block.

These are the functions that MambaMixer and Mamba2Mixer fall back to. FalconMamba, Jamba and Zamba
have copies of the former; Bamba, FalconH1, GraniteMoeHybrid, Nemotron-H and Zamba2 of the latter.
Scans and the block cast to float32.
"""

from functools import cache

import torch
from torch.func import functional_call
from transformers import MambaConfig
from transformers.cache_utils import DynamicCache
from transformers.models.mamba.modeling_mamba import (
    MambaMixer,
    causal_conv1d_fn,
    causal_conv1d_update,
    mamba_selective_scan,
    mamba_selective_state_update,
)
from transformers.models.mamba2.modeling_mamba2 import (
    mamba2_chunk_scan,
    mamba2_selective_state_update,
)

from refssm.adapters import dt_and_A
from refssm.subjects.mamba_block import (
    BLOCK_SCAN,
    BLOCK_STEPPED,
    F4,
    LAYER,
    LAYER_STATEFUL,
    REAL,
    SCAN,
    STEPPED,
    sizes_of,
    weights_of,
)
from refssm.testing import implements


@implements("selective_scan", vjp=True, layout=SCAN, **F4)
def selective_scan(u, dt, A, B, C):
    """mamba_selective_scan, a loop over time."""
    return mamba_selective_scan(u, dt, A, B, C)


@implements("mamba_scan", vjp=True, layout=BLOCK_SCAN, **F4)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """mamba_selective_scan with bias, softplus, skip connection and gate."""
    return mamba_selective_scan(u, dt, A, B, C, D, z, dt_bias, delta_softplus=True)


@implements("selective_step", layout=STEPPED, **F4)
def selective_step(u, dt, A, B, C, x):
    """mamba_selective_state_update, which overwrites the old state with the new one."""
    x = x.clone()
    return mamba_selective_state_update(x, u, dt, A, B, C), x


@implements("mamba_step", layout=BLOCK_STEPPED, **F4)
def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """mamba_selective_state_update with bias, softplus, skip connection and gate."""
    x = x.clone()
    y = mamba_selective_state_update(x, u, dt, A, B, C, D, dt_bias, dt_softplus=True, z=z)
    return y, x


@implements("short_convolution", vjp=True, layout="b d l, d t -> b d l", **REAL)
def short_convolution(u, k):
    """causal_conv1d_fn: a Conv1d, whose weights are the taps in reverse order."""
    return causal_conv1d_fn(u, torch.flip(k, (-1,)))


@implements("short_convolution_stateful", layout="b d l, d t, b d t -> b d l, b d t", **REAL)
def short_convolution_stateful(u, k, s0):
    """causal_conv1d_update, which overwrites the stored inputs with the last ones."""
    s = s0.clone()
    return causal_conv1d_update(u, s, torch.flip(k, (-1,))), s


@implements("short_convolution_step", layout="b d, d t, b d t -> b d, b d t", **REAL)
def short_convolution_step(u, k, s):
    """causal_conv1d_update for one input, as in decoding."""
    y, s = short_convolution_stateful(u[..., None], k, s)
    return y[..., 0], s


# Mamba-2's decays are e^{A dt} with one A per head, and inputs are x dt: the scan is judged in
# these arguments, the step with A = log_a, dt = 1. Heads are numbered group by group. The last
# chunk is padded, and a chunk needs the square of its length for each head: a chunk of 4096 steps
# takes a minute even for short sequences, and no configuration uses it.
LONGEST = 256  # longest chunk, as in Mamba2Config

HEADS = "b l g h p, b l g h, g h, b l g n, b l g n"


@implements("ssd_chunked", vjp=True, adapters=dt_and_A(), layout=f"{HEADS} -> b l g h p", **F4)
def ssd_chunked(x, dt, A, B, C, *, chunk):
    """mamba2_chunk_scan from a zero state."""
    _not_too_long(chunk)
    heads, steps, rates = x.flatten(2, 3), dt.flatten(2, 3), A.flatten()
    return mamba2_chunk_scan(heads, steps, rates, B, C, chunk).reshape(x.shape)


@implements(
    "ssd_chunked_stateful",
    vjp=True,
    adapters=dt_and_A(),
    layout=f"{HEADS}, b g h p n -> b l g h p, b g h p n",
    **F4,
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
    "ssd_step", layout="b g h p, b g h, b g n, b g n, b g h p n -> b g h p, b g h p n", **F4
)
def ssd_step(x, log_a, B, C, S):
    """mamba2_selective_state_update, which overwrites the old state with the new one."""
    heads, states = x.flatten(1, 2), S.flatten(1, 2).clone()
    decays = log_a.flatten(1, 2)[..., None, None].expand(states.shape)
    y = mamba2_selective_state_update(states, heads, torch.ones_like(heads), decays, B, C)
    return y.reshape(x.shape), states.reshape(S.shape)


# the whole call: the gate is in the norm behind it, and the step's arguments have all axes
CALLED = "b l g h p, b l g h, g h, b l g n, b l g n, g h, b l g h p, g h"
CALL_STEP = "b g h p, b g h, g h, b g n, b g n, g h, b g h p, g h, b g h p n"


def _chunks(x, dt, A, B, C, D, z, dt_bias, dt_min, dt_max, **more):
    """mamba2_chunk_scan, 64 steps in a chunk."""
    heads, steps, rates = x.flatten(2, 3), dt.flatten(2, 3), A.flatten()
    found = mamba2_chunk_scan(
        heads, steps, rates, B, C, 64, D=D.flatten(), dt_bias=dt_bias.flatten(), dt_softplus=True,
        dt_limit=(dt_min, dt_max), **more,
    )  # fmt: skip
    y, *S = found if more else (found,)
    return y.reshape(x.shape) * torch.nn.functional.silu(z), *S


@implements("mamba2_scan", vjp=True, layout=f"{CALLED} -> b l g h p", **F4)
def mamba2_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """mamba2_chunk_scan with bias, softplus, limits and skip; then the gate."""
    return _chunks(x, dt, A, B, C, D, z, dt_bias, dt_min, dt_max)[0]


@implements(
    "mamba2_scan_stateful",
    vjp=True,
    layout=f"{CALLED}, b g h p n -> b l g h p, b g h p n",
    **F4,
)
def mamba2_scan_stateful(x, dt, A, B, C, D, z, dt_bias, S0, *, dt_min, dt_max):
    """The same from S0, with the last state."""
    carried = {"initial_states": S0.flatten(1, 2), "return_final_states": True}
    y, S = _chunks(x, dt, A, B, C, D, z, dt_bias, dt_min, dt_max, **carried)
    return y, S.reshape(S0.shape)


def without_limits(x):
    """The case with limits that no step reaches."""
    return {**x, "dt_min": 0.0, "dt_max": 1024.0}


@implements("mamba2_step", layout=f"{CALL_STEP} -> b g h p, b g h p n", only=without_limits, **F4)
def mamba2_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """mamba2_selective_state_update, which has no limits on dt and overwrites the old state."""
    del dt_min, dt_max
    p, states, heads, gate = x.shape[-1], *(a.flatten(1, 2) for a in (S.clone(), x, z))
    bias, skip = (a.reshape(-1)[:, None].expand(-1, p) for a in (dt_bias, D))
    steps = dt.flatten(1, 2)[..., None].expand(heads.shape)
    rates = A.reshape(-1)[:, None, None].expand(states.shape[1:])
    y = mamba2_selective_state_update(
        states, heads, steps, rates, B, C, skip, bias, dt_softplus=True, z=gate
    )
    return y.reshape(x.shape), states.reshape(S.shape)


STEPS = 16  # a step is a call of the whole module


def few_steps(x):
    """The case cut to its first steps."""
    return {**x, "u": x["u"][..., :STEPS, :]}


@cache
def block(h, e, t, r, n):
    """A block of these sizes; the weights come with each call."""
    config = MambaConfig(  # pyright: ignore[reportCallIssue]
        hidden_size=h, state_size=n, conv_kernel=t, time_step_rank=r, num_hidden_layers=1
    )
    config.intermediate_size = e
    mixer = MambaMixer(config, 0, initialize_mixer_weights=False)
    return mixer.eval()


def _called(u, *parameters, **options):
    return functional_call(block(*sizes_of(*parameters)), weights_of(*parameters), (u,), options)


@implements("mamba_layer", layout=LAYER, vjp=True, **F4)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaMixer.forward over a sequence."""
    return _called(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out)


@implements(
    "mamba_layer_stateful",
    layout=LAYER_STATEFUL,
    only=few_steps,
    **F4,
)
def mamba_layer_stateful(
    u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
):
    """MambaMixer.forward one step after another: of several steps it would start the scan at 0."""
    weights = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    module = block(*sizes_of(*weights))
    states, y = DynamicCache(config=module.config), [u[:, :0]]
    states.update_conv_state(s0.clone(), 0, conv_kernel_size=k.shape[-1])
    states.update_recurrent_state(x0.clone(), 0)
    for row in u.unbind(1):
        y.append(_called(row[:, None, :], *weights, cache_params=states))
    return torch.cat(y, dim=1), states.get_conv_state(0), states.get_recurrent_state(0)
