# pyright: reportMissingImports=false
"""s5-pytorch: apply_ssm, forward and bidirectional, and its discretizations.

It returns Re C x for all modes of a system, where refssm has one mode of each conjugate pair, so 2C
is passed. Its D has one number per channel, so cases are cut to one channel.
"""

import torch
from s5.s5_model import apply_ssm
from s5.s5_model import discretize_bilinear as bilinear
from s5.s5_model import discretize_zoh as zoh

from refssm.testing import implements


def one_channel(x):
    """The case cut to its first input and first output."""
    C, D = x["C"][..., :1, :], x["D"][..., :1, :1]
    return {**x, "B": x["B"][..., :1], "C": C, "D": D, "u": x["u"][..., :1]}


DECLARED = {"framework": "torch", "vjp": True, "only": one_channel}
LAYOUT = "n, n m, p n, p m, l m"


def _applied(a, B, C, D, u, **options):
    """Outputs and last state; all arguments get one type, because apply_ssm casts its input."""
    if u.shape[-2] == 0:
        raise NotImplementedError("apply_ssm returns the last state: one step at least")
    kind = (a.flatten()[:1] * B.flatten()[:1] * C.flatten()[:1] * u.flatten()[:1]).dtype
    return apply_ssm(a.to(kind), B.to(kind), C.to(kind), D[:, 0], u, **options)


@implements("diagonal_ssm_real", layout=f"{LAYOUT} -> l p", **DECLARED)
def diagonal_ssm_real(a, B, C, D, u):
    """apply_ssm; its associative_scan is a port of JAX's."""
    return _applied(a, B, 2 * C, D, u)[0]


@implements("diagonal_ssm_bidirectional", layout="n, n m, p 2n, p m, l m -> l p", **DECLARED)
def diagonal_ssm_bidirectional(a, B, C, D, u):
    """apply_ssm in both directions: Re C x + D u, and Im C x as the real part of −iC x."""
    y = _applied(a, B, C, D, u, bidir=True)[0]
    if not any(part.is_complex() for part in (a, B, C, u)):
        return y
    return y + 1j * _applied(a, B, -1j * C, torch.zeros_like(D), u, bidir=True)[0]


@implements("discretize_diagonal_zoh", framework="torch", vjp=True, layout="n, n m, n -> n, n m")
def discretize_diagonal_zoh(w, B, dt):
    """(1/Λ)(e^{ΔΛ} − 1) B̃."""
    return zoh(w, B, dt)


@implements(
    "discretize_diagonal_bilinear", framework="torch", vjp=True, layout="n, n m, n -> n, n m"
)
def discretize_diagonal_bilinear(w, B, dt):
    """Uses (1 − ½ΔΛ)⁻¹ as a factor."""
    return bilinear(w, B, dt)
