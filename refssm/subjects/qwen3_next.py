# pyright: reportMissingImports=false
"""transformers' Qwen3-Next without its CUDA kernels: gated delta rule, norm and convolution.

These are the functions that its layers fall back to; OLMo-Hybrid, Qwen3.5 and Kimi Linear have
copies. All queries are divided by √n there; the models also have queries and keys normalised.
"""

from typing import Any

import torch
from torch.func import functional_call
from transformers.models.qwen3_next.modeling_qwen3_next import (
    Qwen3NextRMSNormGated,
    causal_conv1d_update,
    torch_chunk_gated_delta_rule,
    torch_recurrent_gated_delta_rule,
)

from refssm.adapters import normalised, scaled
from refssm.testing import implements

GATED = "b l g n, b l g n, b l (g h) p, b l (g h), b l (g h)"
FROM_REST = f"{GATED} -> b l (g h) p"
FROM_STATE = f"{GATED}, b (g h) n p -> b l (g h) p, b (g h) n p"
CONVOLVED = "b d l, d t, d, b d t -> b d l, b d t"
DECLARED: dict[str, Any] = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}
SCALED: dict[str, Any] = {"adapters": (scaled(),), **DECLARED}
NORMALISED: dict[str, Any] = {
    "adapters": (scaled(), normalised("q"), normalised("k")),
    **DECLARED,
}


@implements("gated_delta_rule", layout=FROM_REST, **SCALED)
def recurrent(q, k, v, log_g, beta):
    """torch_recurrent_gated_delta_rule."""
    return torch_recurrent_gated_delta_rule(q, k, v, log_g, beta)[0]


@implements("gated_delta_rule", layout=FROM_REST, **NORMALISED)
def recurrent_normalised(q, k, v, log_g, beta):
    """torch_recurrent_gated_delta_rule with use_qk_l2norm_in_kernel, as the model calls it."""
    return torch_recurrent_gated_delta_rule(q, k, v, log_g, beta, use_qk_l2norm_in_kernel=True)[0]


@implements("gated_delta_rule_stateful", layout=FROM_STATE, **SCALED)
def recurrent_stateful(q, k, v, log_g, beta, S0):
    """torch_recurrent_gated_delta_rule from a state."""
    return torch_recurrent_gated_delta_rule(q, k, v, log_g, beta, S0, True)


@implements("gated_delta_rule_chunked", layout=FROM_REST, **SCALED)
def chunked(q, k, v, log_g, beta, *, chunk):
    """torch_chunk_gated_delta_rule."""
    return torch_chunk_gated_delta_rule(q, k, v, log_g, beta, chunk)[0]


@implements("gated_delta_rule_chunked", layout=FROM_REST, **NORMALISED)
def chunked_normalised(q, k, v, log_g, beta, *, chunk):
    """torch_chunk_gated_delta_rule with use_qk_l2norm_in_kernel, as the model calls it."""
    how = {"use_qk_l2norm_in_kernel": True}
    return torch_chunk_gated_delta_rule(q, k, v, log_g, beta, chunk, **how)[0]


@implements("gated_delta_rule_chunked_stateful", layout=FROM_STATE, **SCALED)
def chunked_stateful(q, k, v, log_g, beta, S0, *, chunk):
    """torch_chunk_gated_delta_rule from a state."""
    return torch_chunk_gated_delta_rule(q, k, v, log_g, beta, chunk, S0, True)


@implements("rms_norm_gated", layout="b l n, b l n, n -> b l n", **DECLARED)
def norm(x, z, w, *, eps):
    """Qwen3NextRMSNormGated."""
    module = Qwen3NextRMSNormGated(x.shape[-1], eps)
    return functional_call(module, {"weight": w}, (x, z))


@implements("causal_conv1d_stateful", layout=CONVOLVED, framework="torch", dtypes=("float32",))
def convolution_stateful(u, k, bias, s0):
    """causal_conv1d_update with SiLU, which overwrites the stored inputs."""
    s = s0.clone()
    return causal_conv1d_update(u, s, torch.flip(k, (-1,)), bias, "silu"), s
