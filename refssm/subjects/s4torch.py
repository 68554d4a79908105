# pyright: reportMissingImports=false
"""S4Torch's `S4Layer`: its kernel at the roots of unity, and its convolution."""

from types import SimpleNamespace

import torch

from refssm.adapters import halves, log_dt
from refssm.subjects.clones import module
from refssm.testing import implements

layer = module("S4Torch", "s4torch.layer")


def rank_one(x):
    """The case, if A is diagonal plus a matrix of rank one."""
    return x if x["P"].shape[-1] == 1 and x["l"] else None


@implements(
    "dplr_kernel_aliased",
    framework="torch",
    vjp=True,
    dtypes=("complex64",),
    kinds="complex",
    adapters=(halves(), log_dt()),
    only=rank_one,
    layout="n, n r, n r, d n, d n, d -> d l",
)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """The property K, with all modes and log dt; the parameter Ct is conjugated."""
    w, p, q, B, C = (torch.cat([v, v.conj()], -1) for v in (w, P[:, 0], Q[:, 0], B, C))
    order = torch.tensor([i if i == 0 else l - i for i in range(l)])
    own = {"p": p, "q": q, "lambda_": w[None, None], "B": B, "Ct": C.conj(), "log_step": dt}
    fixed = {"omega_l": layer._make_omega_l(l), "ifft_order": order, "l_max": l}
    here = SimpleNamespace(**own, **fixed)
    here._compute_roots = lambda: layer.S4Layer._compute_roots(here)
    return layer.S4Layer.K.fget(here)[0]


@implements(
    "causal_convolution",
    framework="torch",
    vjp=True,
    dtypes=("float32",),
    layout="b l d, 1 d l -> b l d",
)
def causal_convolution(u, k):
    """_non_circular_convolution, which computes in float32."""
    return layer._non_circular_convolution(u, k)
