# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""transformers' Mamba2Mixer, Qwen3NextGatedDeltaNet and RecurrentGemma's block, whole, with the
judge's parameters.

Their maps lie side by side in one matrix, and so do the taps of their filters, the oldest input
first. Qwen3-Next's ε is set to 1e-5; its own is 1e-6, with which it is another function.
RecurrentGemma's first step of a document is not scaled: places begin with 1, not 0.
"""

from functools import cache
from typing import Any

import torch
from torch.func import functional_call
from transformers import Mamba2Config, Qwen3NextConfig, RecurrentGemmaConfig
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet
from transformers.models.recurrent_gemma.modeling_recurrent_gemma import (
    RecurrentGemmaRecurrentBlock,
)

from refssm.testing import implements

F4: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",)}
EPSILON = 1e-5
CHUNK = 64  # steps of a chunk, in which NaN spreads; Qwen3-Next's number


@cache
def mixer(g, p, n, t):
    """A Mamba-2 of these sizes; the weights come with each call, and with them the number of
    channels, of which a configuration wants g p/expand."""
    config = Mamba2Config(  # pyright: ignore[reportCallIssue]
        hidden_size=g * p, state_size=n, conv_kernel=t, num_heads=g, head_dim=p, expand=1,
        n_groups=1, num_hidden_layers=1, chunk_size=CHUNK,
    )  # fmt: skip
    return Mamba2Mixer(config, 0, initialize_mixer_weights=False).eval()


def _beside(*maps):
    """Maps (g, h, n) or (h, n) as the rows of one matrix (outputs, h)."""
    rows = [W.permute(0, 2, 1).flatten(0, 1) if W.ndim > 2 else W.T for W in maps]
    return torch.cat(rows)


def _taps(*taps):
    """Taps (…, t) as PyTorch's weights of a convolution, the oldest input first."""
    return torch.cat([k.flatten(0, -2) for k in taps]).flip(-1)[:, None]


@implements(
    "mamba2_layer",
    layout="b l h, g h p, g h p, h n, h n, h g, g p t, n t, n t, g p, n, n, g, g, g, g p, g p h "
    "-> b l h",
    vjp=True,
    nan_chunk=CHUNK,
    **F4,
)
def mamba2_layer(
    u, W_z, W_x, W_B, W_C, W_dt, k_x, k_B, k_C, bias_x, bias_B, bias_C, dt_bias, log_rate, D,
    scale, W_out,
):  # fmt: skip
    """Mamba2Mixer.forward over a sequence."""
    (g, _, p), (n, t) = W_z.shape, k_B.shape
    weights = {
        "in_proj.weight": _beside(W_z, W_x, W_B, W_C, W_dt),
        "conv1d.weight": _taps(k_x, k_B, k_C),
        "conv1d.bias": torch.cat([bias_x.flatten(), bias_B, bias_C]),
        "dt_bias": dt_bias, "A_log": log_rate, "D": D, "norm.weight": scale.flatten(),
        "out_proj.weight": W_out.flatten(0, 1).T,
    }  # fmt: skip
    return functional_call(mixer(g, p, n, t), weights, (u,))


@cache
def deltanet(h, g, n, p, t):
    """A gated DeltaNet of these sizes, as many heads of keys as of values."""
    config = Qwen3NextConfig(  # pyright: ignore[reportCallIssue]
        hidden_size=h, linear_num_value_heads=g, linear_num_key_heads=g, linear_key_head_dim=n,
        linear_value_head_dim=p, linear_conv_kernel_dim=t, rms_norm_eps=EPSILON,
        num_hidden_layers=1, layer_types=["linear_attention"],
    )  # fmt: skip
    return Qwen3NextGatedDeltaNet(config, 0).eval()


@implements(
    "gated_deltanet_layer",
    layout="b l h, g h n, g h n, g h p, g n t, g n t, g p t, h g, h g, g, g, g h p, p, g p h "
    "-> b l h",
    vjp=True,
    nan_chunk=CHUNK,
    **F4,
)
def gated_deltanet_layer(
    u, W_q, W_k, W_v, k_q, k_k, k_v, W_a, W_b, dt_bias, log_rate, W_gate, scale, W_out
):
    """Qwen3NextGatedDeltaNet.forward over a sequence."""
    (g, h, n), (_, p, t) = W_q.shape, k_v.shape
    weights = {
        "in_proj_qkvz.weight": torch.cat([W_q, W_k, W_v, W_gate], -1).mT.flatten(0, 1),
        "in_proj_ba.weight": torch.stack([W_b, W_a], -1).flatten(1).T,
        "conv1d.weight": _taps(k_q, k_k, k_v),
        "dt_bias": dt_bias, "A_log": log_rate, "norm.weight": scale,
        "out_proj.weight": W_out.flatten(0, 1).T,
    }  # fmt: skip
    return functional_call(deltanet(h, g, n, p, t), weights, (u,))


@cache
def recurrent_block(h, g, p, t):
    """A recurrent block of these sizes."""
    config = RecurrentGemmaConfig(  # pyright: ignore[reportCallIssue]
        hidden_size=h, num_attention_heads=g, lru_width=g * p, conv1d_width=t,
        hidden_activation="gelu", num_hidden_layers=1,
    )  # fmt: skip
    return RecurrentGemmaRecurrentBlock(config, 0).eval()


@implements(
    "rglru_layer",
    layout="b l h, g h p, g p, g h p, g p, g p t, g p, g p p, g p, g p p, g p, g p, g p h, h "
    "-> b l h",
    vjp=True,
    **F4,
)
def rglru_layer(u, W_gate, b_gate, W_u, b_u, k, k_bias, W_r, b_r, W_i, b_i, a_param, W_out, b_out):
    """RecurrentGemmaRecurrentBlock.forward over a sequence, from rest."""
    (g, h, p), t = W_u.shape, k.shape[-1]
    block = recurrent_block(h, g, p, t)
    block.rg_lru.recurrent_states = None  # a call leaves its last state there
    weights = {
        "linear_y.weight": _beside(W_gate), "linear_y.bias": b_gate.flatten(),
        "linear_x.weight": _beside(W_u), "linear_x.bias": b_u.flatten(),
        "conv_1d.weight": _taps(k), "conv_1d.bias": k_bias.flatten(),
        "rg_lru.recurrent_param": a_param.flatten(),
        "rg_lru.recurrent_gate_weight": W_r, "rg_lru.recurrent_gate_bias": b_r,
        "rg_lru.input_gate_weight": W_i, "rg_lru.input_gate_bias": b_i,
        "linear_out.weight": W_out.flatten(0, 1).T, "linear_out.bias": b_out,
    }  # fmt: skip
    places = torch.arange(1, u.shape[1] + 1)[None]
    return functional_call(block, weights, (u, places, None), {"use_cache": False})[0]
