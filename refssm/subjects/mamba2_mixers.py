# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""transformers' mixers of Mamba-2 without CUDA kernels: scan, step, norm and convolution in them.

Mamba-2, Bamba, Zamba2, Nemotron-H, Granite 4 and Falcon-H1. `forward` of the first five is equal,
and so are the functions that all six call; what they make of a configuration differs. A mixer is
called with the judge's arguments as its parameters, between projections that change nothing, with
one tap of 1 and no activation in its convolution, and with the gate alone in place of its norm:
norms and convolutions are judged by themselves. Falcon-H1 has a configuration without a norm.
"""

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call
from transformers import (
    BambaConfig,
    DynamicCache,
    FalconH1Config,
    GraniteMoeHybridConfig,
    Mamba2Config,
    NemotronHConfig,
    Zamba2Config,
)
from transformers.models.bamba.modeling_bamba import BambaMixer
from transformers.models.falcon_h1.modeling_falcon_h1 import FalconH1Mixer, compute_mup_vector
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import (
    GraniteMoeHybridMambaLayer,
)
from transformers.models.mamba2.modeling_mamba2 import (
    Mamba2Mixer,
    causal_conv1d_fn,
    causal_conv1d_update,
)
from transformers.models.nemotron_h.modeling_nemotron_h import NemotronHMamba2Mixer
from transformers.models.zamba2.modeling_zamba2 import Zamba2MambaMixer

from refssm.adapters import neg_exp
from refssm.testing import implements

CHUNK = 32
F4: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",)}
TRAINED: dict[str, Any] = {"vjp": True, **F4}
RATES: dict[str, Any] = {"adapters": (neg_exp("A"),), **TRAINED}
CALL = "b l (g h) p, b l (g h), (g h), b l g n, b l g n, (g h), b l (g h) p, (g h)"
SCAN, OUTPUT, STATE = f"{CALL} -> b l (g h) p", "b l (g h) p", "b (g h) p n"
STATEFUL = f"{CALL}, {STATE} -> {OUTPUT}, {STATE}"
STEP = "b (g h) p, b (g h), (g h), b g n, b g n, (g h), b (g h) p, (g h)"
STEPPED = f"{STEP}, {STATE} -> b (g h) p, {STATE}"
NORM = "b l n, b l n, n -> b l n"
CONVOLVED = "b d l, d t, d"


class Sizes(NamedTuple):
    """What a configuration is made from: heads, channels of one, groups, states, and ε."""

    heads: int
    channels: int
    groups: int
    states: int
    eps: float = 1e-5


class Gate(nn.Module):
    """What is left of the gated norm without the norm."""

    def forward(self, y, z):
        return y * nn.functional.silu(z)


# Bamba, Granite 4 and Falcon-H1 name sizes alike
HYBRIDS = (BambaConfig, GraniteMoeHybridConfig, FalconH1Config)
# of z, x, B, C and dt, and of all: powers of two, so that dividing by them before is exact
MULTIPLIERS, OF_ALL = (0.5, 0.25, 0.125, 0.0625, 0.03125), 0.5


def configured(kind, s: Sizes, **more):
    """A configuration of one layer with these sizes, whose convolution has one tap."""
    width = s.heads * s.channels
    if kind in HYBRIDS:
        names = {
            "mamba_n_heads": s.heads, "mamba_d_head": s.channels, "mamba_n_groups": s.groups,
            "mamba_d_state": s.states, "mamba_expand": 1, "mamba_d_conv": 1,
            "mamba_chunk_size": CHUNK, "hidden_act": "linear", "rms_norm_eps": s.eps,
        }  # fmt: skip
    elif kind is Zamba2Config:
        names = {
            "n_mamba_heads": s.heads, "mamba_ngroups": s.groups, "mamba_d_state": s.states,
            "mamba_expand": 1, "mamba_d_conv": 1, "chunk_size": CHUNK,
            "layers_block_type": ["linear_attention"], "num_attention_heads": 1,
        }  # fmt: skip
    elif kind is NemotronHConfig:
        names = {
            "mamba_num_heads": s.heads, "mamba_head_dim": s.channels, "n_groups": s.groups,
            "ssm_state_size": s.states, "conv_kernel": 1, "chunk_size": CHUNK,
            "mamba_hidden_act": "linear", "layers_block_type": ["linear_attention"],
            "layer_norm_epsilon": s.eps,
        }  # fmt: skip
    else:
        names = {
            "num_heads": s.heads, "head_dim": s.channels, "n_groups": s.groups,
            "state_size": s.states, "expand": 1, "conv_kernel": 1, "chunk_size": CHUNK,
            "hidden_act": "linear", "layer_norm_epsilon": s.eps,
        }  # fmt: skip
    if kind is not NemotronHConfig:
        names["num_hidden_layers"] = 1
    if kind is FalconH1Config:
        names |= {"mamba_d_ssm": width, "ssm_multipliers": [*MULTIPLIERS]}
        names |= {"ssm_in_multiplier": OF_ALL}
    return kind(hidden_size=width, **names, **more)


@cache
def built(mixer, kind, s: Sizes):
    """A mixer whose projections change nothing; its convolution has one tap of 1."""
    config = configured(kind, s)
    module = mixer(config, 0).eval()
    module.in_proj, module.out_proj = nn.Identity(), nn.Identity()
    module.activation = "linear"  # Zamba2 has no option for it
    nn.init.ones_(module.conv1d.weight)
    nn.init.zeros_(module.conv1d.bias)
    if mixer is FalconH1Mixer:
        module.register_buffer("mup_vector", compute_mup_vector(config))
    else:
        module.norm = Gate()
    return module, config


def called(model, x, dt, A_log, B, C, D, z, dt_bias, limits, S0=None):
    """`forward` of a mixer; from a state also the last one."""
    s = Sizes(*x.shape[2:], *B.shape[2:])
    module, config = built(*model, s)
    module.time_step_limit = limits
    parts = [z.flatten(2), x.flatten(2), B.flatten(2), C.flatten(2), dt]
    if model is FALCON_H1:
        parts = [v / m / OF_ALL for v, m in zip(parts, MULTIPLIERS, strict=True)]
    projected, parameters = torch.cat(parts, -1), {"A_log": A_log, "D": D, "dt_bias": dt_bias}
    if S0 is None:
        return functional_call(module, parameters, (projected,)).reshape(x.shape)
    states = DynamicCache(config=config)
    channels = s.heads * s.channels + 2 * s.groups * s.states
    states.update_conv_state(x.new_zeros(len(x), channels, 1), 0, conv_kernel_size=1)
    states.update_recurrent_state(S0.contiguous(), 0)
    y = functional_call(module, parameters, (projected,), {"cache": states})
    return y.reshape(x.shape), states.get_recurrent_state(0)


def stepped(model, x, dt, A_log, B, C, D, z, dt_bias, S):
    """`forward` of a mixer for one token, with its cache: a path of its own, without limits."""
    first = (v[:, None] for v in (x, dt, B, C, z))
    x, dt, B, C, z = first
    y, S = called(model, x, dt, A_log, B, C, D, z, dt_bias, (0.0, float("inf")), S)
    return y[:, 0], S


def without_limits(x):
    """The case with limits that no step reaches."""
    return {**x, "dt_min": 0.0, "dt_max": 1024.0}


def some_steps(x):
    """The case if it has two steps: one from a state is another path, and none is not cut off."""
    return x if x["x"].shape[-2] > 1 else None


def normed(model, x, z, w, eps, group, **more):
    """The norm of a mixer: `group` channels for each of its groups, and one state."""
    n = x.shape[-1]
    s = Sizes(n, 1, n // (group or n), 1, eps)
    mixer, kind = model
    return functional_call(mixer(configured(kind, s, **more), 0).norm, {"weight": w}, (x, z))


MAMBA2, BAMBA = (Mamba2Mixer, Mamba2Config), (BambaMixer, BambaConfig)
ZAMBA2, NEMOTRON_H = (Zamba2MambaMixer, Zamba2Config), (NemotronHMamba2Mixer, NemotronHConfig)
GRANITE = (GraniteMoeHybridMambaLayer, GraniteMoeHybridConfig)
FALCON_H1 = (FalconH1Mixer, FalconH1Config)


@implements("mamba2_scan", layout=SCAN, **RATES)
def mamba2_mixer(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """Mamba2Mixer.forward."""
    return called(MAMBA2, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan", layout=SCAN, **RATES)
def bamba_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """BambaMixer.forward."""
    return called(BAMBA, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan", layout=SCAN, **RATES)
def zamba2_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """Zamba2MambaMixer.forward."""
    return called(ZAMBA2, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan", layout=SCAN, **RATES)
def nemotron_h_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """NemotronHMamba2Mixer.forward."""
    return called(NEMOTRON_H, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan", layout=SCAN, **RATES)
def granite_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """GraniteMoeHybridMambaLayer.forward."""
    return called(GRANITE, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan", layout=SCAN, **RATES)
def falcon_h1_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """FalconH1Mixer.forward without a norm, with multipliers."""
    return called(FALCON_H1, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max))


@implements("mamba2_scan_stateful", layout=STATEFUL, only=some_steps, **RATES)
def mamba2_mixer_stateful(x, dt, A, B, C, D, z, dt_bias, S0, *, dt_min, dt_max):
    """Mamba2Mixer.forward of several tokens with a cache."""
    return called(MAMBA2, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max), S0)


@implements("mamba2_scan_stateful", layout=STATEFUL, only=some_steps, **RATES)
def falcon_h1_scan_stateful(x, dt, A, B, C, D, z, dt_bias, S0, *, dt_min, dt_max):
    """FalconH1Mixer.forward of several tokens with a cache."""
    return called(FALCON_H1, x, dt, A, B, C, D, z, dt_bias, (dt_min, dt_max), S0)


@implements("mamba2_step", layout=STEPPED, only=without_limits, adapters=(neg_exp("A"),), **F4)
def mamba2_mixer_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """Mamba2Mixer.forward of one token with a cache."""
    del dt_min, dt_max
    return stepped(MAMBA2, x, dt, A, B, C, D, z, dt_bias, S)


@implements("mamba2_step", layout=STEPPED, only=without_limits, adapters=(neg_exp("A"),), **F4)
def falcon_h1_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """FalconH1Mixer.forward of one token with a cache."""
    del dt_min, dt_max
    return stepped(FALCON_H1, x, dt, A, B, C, D, z, dt_bias, S)


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def mamba2_norm(x, z, w, *, eps, group):
    """MambaRMSNormGated, as Mamba2Mixer makes it."""
    return normed(MAMBA2, x, z, w, eps, group)


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def bamba_norm(x, z, w, *, eps, group):
    """BambaRMSNormGated, as BambaMixer makes it."""
    return normed(BAMBA, x, z, w, eps, group)


def their_eps(x):
    """The case with ε = 1e-5: Zamba2 has no other in its mixers."""
    return {**x, "eps": 1e-5}


@implements("gated_rms_norm", layout=NORM, only=their_eps, **TRAINED)
def zamba2_norm(x, z, w, *, eps, group):
    """Zamba2RMSNormGated, as Zamba2MambaMixer makes it."""
    return normed(ZAMBA2, x, z, w, eps, group)


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def nemotron_h_norm(x, z, w, *, eps, group):
    """NemotronHRMSNormGated, as NemotronHMamba2Mixer makes it."""
    return normed(NEMOTRON_H, x, z, w, eps, group)


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def granite_norm(x, z, w, *, eps, group):
    """GraniteMoeHybridRMSNormGated, as GraniteMoeHybridMambaLayer makes it."""
    return normed(GRANITE, x, z, w, eps, group)


@implements("gated_rms_norm", layout=NORM, **TRAINED)
def falcon_h1_norm(x, z, w, *, eps, group):
    """FalconH1RMSNormGated with norm_before_gate=False, as FalconH1Mixer makes it."""
    how = {"mamba_rms_norm": True, "mamba_norm_before_gate": False}
    return normed(FALCON_H1, x, z, w, eps, group, **how)


@implements("rms_norm_gated", layout=NORM, **TRAINED)
def falcon_h1_norm_before_gate(x, z, w, *, eps):
    """FalconH1RMSNormGated, as FalconH1Mixer makes it: the norm before the gate."""
    return normed(FALCON_H1, x, z, w, eps, None, mamba_rms_norm=True)


@implements("causal_conv1d", layout=f"{CONVOLVED} -> b d l", **TRAINED)
def convolution(u, k, bias):
    """causal_conv1d_fn with SiLU."""
    return causal_conv1d_fn(u, torch.flip(k, (-1,)), bias, activation="silu")


@implements("causal_conv1d_stateful", layout=f"{CONVOLVED}, b d t -> b d l, b d t", **F4)
def convolution_cached(u, k, bias, s0):
    """The cache's update_conv_state and causal_conv1d_fn, as a mixer calls them after a prompt."""
    if u.shape[-1] == 0:
        raise NotImplementedError("a mixer keeps the last l outputs, and the last 0 are all")
    states, taps = DynamicCache(config=configured(Mamba2Config, Sizes(1, 1, 1, 1))), k.shape[-1]
    states.update_conv_state(s0, 0, conv_kernel_size=taps)
    inputs = states.update_conv_state(u, 0, conv_kernel_size=taps)
    y = causal_conv1d_fn(inputs, torch.flip(k, (-1,)), bias, activation="silu")
    return y[..., -u.shape[-1] :], states.get_conv_state(0)


@implements("causal_conv1d_stateful", layout=f"{CONVOLVED}, b d t -> b d l, b d t", **F4)
def convolution_updated(u, k, bias, s0):
    """causal_conv1d_update with SiLU, which overwrites the stored inputs."""
    s = s0.clone()
    return causal_conv1d_update(u, s, torch.flip(k, (-1,)), bias, activation="silu"), s


@implements("causal_conv1d_step", layout="b d, d t, d, b d t -> b d, b d t", **F4)
def convolution_step(u, k, bias, s):
    """causal_conv1d_update with SiLU for one input, as in decoding."""
    y, s = convolution_updated(u[..., None], k, bias, s)
    return y[..., 0], s
