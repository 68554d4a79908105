# pyright: reportMissingImports=false
"""mlx-lm's loops over time of MLX arrays, out of its models: RWKV-7, RG-LRU's scan, fixed decays.

Functions are taken alone: their files import what talks to a hub.
"""

from types import SimpleNamespace
from typing import Any, Optional

import mlx.core as mx
import numpy as np
from mlx import nn

from refssm.adapters import linear_gate
from refssm.subjects.clones import definitions
from refssm.subjects.mlx_lm import DECLARED, gradient, of_arrays, with_steps
from refssm.testing import implements


def found(model: str, *names: str, **more: Any) -> SimpleNamespace:
    """Functions of a model's file."""
    given = {"mx": mx, "nn": nn, "Optional": Optional, "ModelArgs": object, **more}
    return definitions("mlx-lm", f"mlx_lm/models/{model}.py", *names, **given)


rwkv7 = found("rwkv7", "_wkv7_step_ops", "Rwkv7TimeMixing")
gemma = found("recurrent_gemma", "rnn_scan")
bailing = found("bailing_moe_linear", "recurrent_gla")

H = "(g h)"
WKV = f"b l g n, b l g n, b l {H} p" + 3 * f", b l {H} n"


def wkv7(q, k, v, w, a, b, S0):
    """Rwkv7TimeMixing._wkv7 where there is no Metal."""
    q, k = (mx.repeat(x, v.shape[2] // x.shape[2], 2) for x in (q, k))
    heads = SimpleNamespace(num_heads=v.shape[2], head_dim=q.shape[-1])
    y, S = rwkv7.Rwkv7TimeMixing._wkv7(heads, q, w, k, v, a, b, S0)
    return y.reshape(v.shape), S  # as the layer does; each entry is a column before


@implements(
    "delta_dplr_stateful",
    layout=f"{WKV}, b {H} p n -> b l {H} p, b {H} p n",
    adapters=(linear_gate(),),
    only=with_steps,
    **DECLARED,
)
def wkv7_ops(q, k, v, w, a, b, S0):
    """_wkv7_step_ops, step after step."""
    return of_arrays(wkv7)(q, k, v, w, a, b, S0)


def wkv7_ops_vjp(dy, dS, *arrays):
    """The gradient of _wkv7_step_ops by MLX."""
    return gradient(wkv7, (dy, dS), arrays)


def scanned(a, b, x0):
    """rnn_scan."""
    return (gemma.rnn_scan(b, a, x0)[0],)


def some_steps(x):
    """The case, if it has a step."""
    return x if x["b"].shape[-2] else None


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", only=some_steps, **DECLARED)
def rnn_scan(a, b, x0):
    """rnn_scan from a state."""
    return of_arrays(scanned)(a, b, x0)[0]


def rnn_scan_vjp(dx, *arrays):
    """The gradient of rnn_scan by MLX."""
    return gradient(scanned, (dx,), arrays)


def with_fixed_decay(x):
    """The case with a step, all with the decay of the first step and member of the batch."""
    if not x["x"].shape[-2]:
        return None
    first = x["log_a"][:1, ..., :1]
    return {**x, "log_a": np.broadcast_to(first, x["log_a"].shape).copy()}


def decayed(x, log_a, B, C, S0):
    """recurrent_gla, whose decay belongs to a head."""
    B, C = (mx.repeat(v, x.shape[1] // v.shape[1], 1) for v in (B, C))
    return bailing.recurrent_gla(C, B, x, log_a[0, :, 0], 1.0, S0)


@implements(
    "ssd_recurrent_stateful",
    layout=f"b {H} l p, b {H} l, b g l n, b g l n, b {H} n p -> b {H} l p, b {H} n p",
    only=with_fixed_decay,
    vjp=False,
    **DECLARED,
)
def recurrent_gla(x, log_a, B, C, S0):
    """recurrent_gla from a state, with one decay for each head."""
    return of_arrays(decayed)(x, log_a, B, C, S0)
