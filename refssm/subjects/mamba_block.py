# pyright: reportMissingImports=false
"""What plug-ins for Mamba in PyTorch share: layouts, declarations, and the weights of a block."""

import torch

F4 = {"framework": "torch", "dtypes": ("float32",)}
REAL = {"framework": "torch", "dtypes": ("float32", "float64")}
SCANNED, STEP = "b d l, b d l, d n, b n l, b n l", "b d, b d, d n, b n, b n"
SCAN, BLOCK_SCAN = f"{SCANNED} -> b d l", f"{SCANNED}, d, b d l, d -> b d l"
STEPPED, BLOCK_STEPPED = f"{STEP}, b d n -> b d, b d n", f"{STEP}, d, b d, d, b d n -> b d, b d n"
TIME_FIRST = "b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d"
CHUNKED = "b l g h p, b l g h, b l g n, b l g n"
CHUNKED_STATEFUL = f"{CHUNKED}, b g h p n -> b l g h p, b g h p n"
PARAMETERS = "h 2e, e t, e, e r, e n, e n, r e, e, e n, e, e h"
LAYER = f"b l h, {PARAMETERS} -> b l h"
LAYER_STATEFUL = f"b l h, {PARAMETERS}, b e t, b e n -> b l h, b e t, b e n"


def weights_of(W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """A block's parameters by name: Linear has transposed matrices, Conv1d the taps reversed."""
    return {
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


def sizes_of(W_in, k, k_bias, W_low, W_B, W_C, W_dt, dt_bias, log_rate, D, W_out):
    """The sizes h, e, t, r and n of a block."""
    return W_in.shape[0], *k.shape, W_dt.shape[0], log_rate.shape[-1]
