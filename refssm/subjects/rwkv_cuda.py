# pyright: reportMissingImports=false
"""RWKV's own RWKV-6 in PyTorch, with which its authors compare their CUDA kernels.

Sums over all pairs of steps in loops, so the cases are small. They take w with log_w = −e^w, and as
many keys as values. The gradient by hand takes two steps or more.
"""

from typing import Any

import torch

from refssm.adapters import neg_exp
from refssm.subjects import square
from refssm.subjects.clones import definitions
from refssm.subjects.triton_interpreter import few
from refssm.testing import implements

AXES = {"r": "b g 1 l n", "k": "b g 1 l n", "v": "b g h l p", "log_w": "b g h l n"}
AXES |= {"u": "g h n"}
small = few(AXES, b=2, g=1, h=2, l=5, n=3, p=3)
GIVEN = "b l g n, b l g n, b l (g h) p, b l (g h) n, (g h) n"
Y = "b l (g h) p"
wkv6 = definitions(
    "RWKV-CUDA", "wkv6/run.py", "RUN_TORCH", "TORCH_BACKWARD", torch=torch, DEVICE="cpu"
)


def few_steps(x):
    """A small case with as many keys as values, if it has a step."""
    x = square(small(x), ("r", "k", "log_w", "u"))
    return x if x["v"].shape[-2] else None


def two_steps(x):
    """The same with two steps or more."""
    x = few_steps(x)
    return x if x and x["v"].shape[-2] > 1 else None


DECLARED: dict[str, Any] = {"framework": "torch", "dtypes": ("float32",), "vjp": True}
OF_W = (neg_exp("log_w"),)


def merged(r, k, v, w, u):
    """Their B, T, C, H and arguments: heads and what they have along one axis."""
    b, l, h, n = v.shape
    r, k = (x.repeat_interleave(h // x.shape[2], 2) for x in (r, k))
    return b, l, h * n, h, *(x.reshape(b, l, h * n) for x in (r, k, v, w)), u


@implements("rwkv6", layout=f"{GIVEN} -> {Y}", only=few_steps, adapters=OF_W, **DECLARED)
def run_torch(r, k, v, w, u):
    """RUN_TORCH of wkv6."""
    return wkv6.RUN_TORCH().forward(*merged(r, k, v, w, u)).view(v.shape)


BY_HAND = {**DECLARED, "vjp": False}


@implements("rwkv6", layout=f"{GIVEN} -> {Y}", only=two_steps, adapters=OF_W, **BY_HAND)
def torch_backward(r, k, v, w, u):
    """RUN_TORCH of wkv6, with TORCH_BACKWARD."""
    return run_torch(r, k, v, w, u)


def torch_backward_vjp(dy, r, k, v, w, u):
    """TORCH_BACKWARD; receptances and keys of a group get the sum over its heads."""
    b, l, c, h, *given = merged(r, k, v, w, u)
    *found, du = wkv6.TORCH_BACKWARD(b, l, c, h, dy.reshape(b, l, c), *given)
    dr, dk, dv, dw = (x.view(v.shape) for x in found)
    dr, dk = (x.view(b, l, r.shape[2], -1, r.shape[3]).sum(3) for x in (dr, dk))
    return dr, dk, dv, dw, du
