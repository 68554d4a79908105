# pyright: reportMissingImports=false
"""transformers' MambaMixer without its CUDA kernels: the whole block, and one step after another.

The matrices of torch.nn.Linear are transposed, the three projections of x are one, and the weights
of a Conv1d are the taps in reverse order. It casts to float32.
"""

from functools import cache

import torch
from torch.func import functional_call
from transformers import MambaConfig
from transformers.cache_utils import DynamicCache
from transformers.models.mamba.modeling_mamba import MambaMixer

from refssm.testing import implements

PARAMETERS = "h 2e, e t, e, e r, e n, e n, r e, e, e n, e, e h"
DECLARED = {"framework": "torch", "dtypes": ("float32",)}
STEPS = 16  # a step is a call of the whole module


def few_steps(x):
    """The case cut to its first steps."""
    return {**x, "u": x["u"][..., :STEPS, :]}


@cache
def block(h, e, t, r, n):
    """A block of these sizes; the weights come with each call."""
    config = MambaConfig(
        hidden_size=h, state_size=n, conv_kernel=t, time_step_rank=r, num_hidden_layers=1
    )
    config.intermediate_size = e
    return MambaMixer(config, 0, initialize_mixer_weights=False).eval()


def _called(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, **options):
    weights = {
        "in_proj.weight": W_in.T,
        "conv1d.weight": torch.flip(k, (-1,))[:, None, :],
        "conv1d.bias": k_bias,
        "x_proj.weight": torch.cat([W_low, W_B, W_C], dim=-1).T,
        "dt_proj.weight": W_dt.T,
        "dt_proj.bias": dt_bias,
        "A_log": log_rate,
        "D": D,
        "out_proj.weight": W_out.T,
    }
    module = block(W_in.shape[0], *k.shape, W_dt.shape[0], log_rate.shape[-1])
    return functional_call(module, weights, (u,), options)


@implements("mamba_layer", layout=f"b l h, {PARAMETERS} -> b l h", vjp=True, **DECLARED)
def mamba_layer(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """MambaMixer.forward over a sequence."""
    return _called(u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out)


@implements(
    "mamba_layer_stateful",
    layout=f"b l h, {PARAMETERS}, b e t, b e n -> b l h, b e t, b e n",
    only=few_steps,
    **DECLARED,
)
def mamba_layer_stateful(
    u, W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out, s0, x0
):
    """MambaMixer.forward one step after another: of several steps it would start the scan at 0."""
    module = block(W_in.shape[0], *k.shape, W_dt.shape[0], log_rate.shape[-1])
    states, y = DynamicCache(config=module.config), [u[:, :0]]
    states.update_conv_state(s0.clone(), 0, conv_kernel_size=k.shape[-1])
    states.update_recurrent_state(x0.clone(), 0)
    weights = W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out
    for row in u.unbind(1):
        y.append(_called(row[:, None, :], *weights, cache_params=states))
    return torch.cat(y, dim=1), states.get_conv_state(0), states.get_recurrent_state(0)
