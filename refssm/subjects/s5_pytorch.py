# pyright: reportMissingImports=false
"""s5-pytorch: apply_ssm, its discretizations, and its module S5SSM with the gate of S5.

It returns Re C x for all modes of a system, where refssm has one mode of each conjugate pair, so 2C
is passed. D of apply_ssm has one number per channel, so cases are cut to one channel. The gate is
that of the published S5, g σ(g W + b), g = GELU(y): its own S5Block puts LayerNorm, residual
connections and GEGLU around S5SSM, which the published layer does not have; it is another layer.
"""

from functools import cache

import torch
from s5.s5_model import S5SSM, apply_ssm
from s5.s5_model import discretize_bilinear as bilinear
from s5.s5_model import discretize_zoh as zoh
from torch.func import functional_call
from torch.nn.functional import gelu

from refssm.testing import implements


def one_channel(x):
    """The case cut to its first input and first output."""
    C, D = x["C"][..., :1, :], x["D"][..., :1, :1]
    return {**x, "B": x["B"][..., :1], "C": C, "D": D, "u": x["u"][..., :1]}


APPLIED = {"framework": "torch", "vjp": True, "only": one_channel}
RULE = {"framework": "torch", "vjp": True, "layout": "n, n m, n -> n, n m"}
LAYOUT = "n, n m, p n, p m, l m"


def _applied(a, B, C, D, u, **options):
    """Outputs and last state; all arguments get one type, because apply_ssm casts its input."""
    if u.shape[-2] == 0:
        raise NotImplementedError("apply_ssm returns the last state: one step at least")
    kind = (a.flatten()[:1] * B.flatten()[:1] * C.flatten()[:1] * u.flatten()[:1]).dtype
    return apply_ssm(a.to(kind), B.to(kind), C.to(kind), D[:, 0], u, **options)


@implements("diagonal_ssm_real", layout=f"{LAYOUT} -> l p", **APPLIED)
def diagonal_ssm_real(a, B, C, D, u):
    """apply_ssm; its associative_scan is a port of JAX's."""
    return _applied(a, B, 2 * C, D, u)[0]


@implements("diagonal_ssm_bidirectional", layout="n, n m, p 2n, p m, l m -> l p", **APPLIED)
def diagonal_ssm_bidirectional(a, B, C, D, u):
    """apply_ssm in both directions: Re C x + D u, and Im C x as the real part of −iC x."""
    y = _applied(a, B, C, D, u, bidir=True)[0]
    if not any(part.is_complex() for part in (a, B, C, u)):
        return y
    return y + 1j * _applied(a, B, -1j * C, torch.zeros_like(D), u, bidir=True)[0]


@implements("discretize_diagonal_zoh", **RULE)
def discretize_diagonal_zoh(w, B, dt):
    """(1/Λ)(e^{ΔΛ} − 1) B̃."""
    return zoh(w, B, dt)


@implements("discretize_diagonal_bilinear", **RULE)
def discretize_diagonal_bilinear(w, B, dt):
    """Uses (1 − ½ΔΛ)⁻¹ as a factor."""
    return bilinear(w, B, dt)


@cache
def ssm(h, n):
    """S5SSM of these sizes; the weights come with each call."""
    w, V = torch.zeros(n, dtype=torch.complex64), torch.eye(n, dtype=torch.complex64)
    return S5SSM(w, V, V, h, n, 1e-3, 1e-1, bcInit="dense")


def _called(signals, w, log_dt, B, C, D, W, b, **options):
    """The gated output of each signal; `options` go to S5SSM."""
    weights = {"Lambda": w, "log_step": log_dt, "B": torch.view_as_real(B), "C": 2 * C, "D": D}
    if signals.shape[-2] == 0:
        raise NotImplementedError("apply_ssm returns the last state: one step at least")

    def one(u):
        return functional_call(ssm(len(D), len(w)), weights, (u,), options)

    g = gelu(torch.stack([one(u) for u in signals]))
    return g * torch.sigmoid(g @ W + b)


@implements(
    "s5_layer",
    framework="torch",
    vjp=True,
    dtypes=("complex64",),
    layout="b l h, n, n, n h, h n, h, h h, h -> b l h",
)
def s5_layer(u, w, log_dt, B, C, D, W, b):
    """S5SSM.forward over a sequence, which casts B to complex64, and the gate."""
    return _called(u, w, log_dt, B, C, D, W, b)
