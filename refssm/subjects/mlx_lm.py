# pyright: reportMissingImports=false
"""mlx-lm's functions of MLX arrays, with which it runs where Metal is not: delta rules, Mamba-2.

Each file is loaded alone: the package imports what talks to a hub.
"""

from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn

from refssm.adapters import linear_gate, neg_exp
from refssm.subjects.clones import alone
from refssm.testing import implements

delta, ssm = (alone("mlx-lm", f"mlx_lm/models/{name}.py") for name in ("gated_delta", "ssm"))

H = "(g h)"
BY_HEAD = f"b l g n, b l g n, b l {H} p, b l {H}, b l {H}"
BY_KEY = f"b l g n, b l g n, b l {H} p, b l {H} n, b l {H}"
ENDS = f"b {H} p n -> b l {H} p, b {H} p n"
DECLARED: dict[str, Any] = {"dtypes": ("float32",), "ftz": True}


def with_steps(x):
    """The case if it has a step: they stack those that there are."""
    return x if x["v" if "v" in x else "x"].shape[-2] else None


GATED: dict[str, Any] = {"adapters": (linear_gate(),), "only": with_steps, **DECLARED}


def given(x):
    """An array of MLX, which takes none with negative strides."""
    return mx.array(np.ascontiguousarray(x))


def of_arrays(function):
    """A function of MLX arrays, of NumPy's."""

    def run(*arrays):
        return tuple(np.array(y) for y in function(*map(given, arrays)))

    return run


def gradient(function, cotangents, arrays):
    """The VJP by MLX."""
    primals = [given(x) for x in arrays]
    _, found = mx.vjp(function, primals, [given(dy) for dy in cotangents])
    return tuple(np.array(g) for g in found)


@implements("gated_delta_rule_stateful", layout=f"{BY_HEAD}, {ENDS}", **GATED)
def gated_delta_ops(q, k, v, g, beta, S0):
    """gated_delta_ops."""
    return of_arrays(delta.gated_delta_ops)(q, k, v, g, beta, S0)


def gated_delta_ops_vjp(dy, dS, *arrays):
    """The gradient of gated_delta_ops by MLX."""
    return gradient(delta.gated_delta_ops, (dy, dS), arrays)


@implements("kimi_delta_rule_stateful", layout=f"{BY_KEY}, {ENDS}", **GATED)
def gated_delta_ops_by_key(q, k, v, g, beta, S0):
    """gated_delta_ops with a gate for each key."""
    return of_arrays(delta.gated_delta_ops)(q, k, v, g, beta, S0)


def gated_delta_ops_by_key_vjp(dy, dS, *arrays):
    """The gradient of gated_delta_ops by MLX."""
    return gradient(delta.gated_delta_ops, (dy, dS), arrays)


def attention(dt_min, dt_max):
    """ssm_attn with these limits, and the gate that Mamba-2 has after it."""

    def run(x, dt, A_log, B, C, D, z, dt_bias, S0):
        y, S = ssm.ssm_attn(x, A_log, B, C, D, dt, dt_bias, S0, (dt_min, dt_max))
        return y * nn.silu(z), S

    return run


@implements(
    "mamba2_scan_stateful",
    layout=f"b l {H} p, b l {H}, {H}, b l g n, b l g n, {H}, b l {H} p, {H}, {ENDS}",
    adapters=(neg_exp("A"),),
    only=with_steps,
    **DECLARED,
)
def ssm_attn(x, dt, A, B, C, D, z, dt_bias, S0, *, dt_min, dt_max):
    """ssm_attn, in chunks of 256, and SiLU of the gate."""
    return of_arrays(attention(dt_min, dt_max))(x, dt, A, B, C, D, z, dt_bias, S0)


def ssm_attn_vjp(dy, dS, *arrays, dt_min, dt_max):
    """The gradient of ssm_attn by MLX."""
    return gradient(attention(dt_min, dt_max), (dy, dS), arrays)
