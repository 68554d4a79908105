"""S4Torch's `S4Layer`: its kernel at the roots of unity, and its convolution."""

from types import SimpleNamespace

import numpy as np
import torch

from refssm.conformance.clones import module
from refssm.testing import implements

layer = module("S4Torch", "s4torch.layer")


def with_conjugates(x):
    """The case with its conjugate beside it: the layer takes the real part of the kernel."""
    if x["P"].shape[-1] != 1 or not x["l"]:
        return None
    n = x["w"].shape[-1] // 2
    if np.array_equal(x["w"][..., n:], x["w"][..., :n].conj()):
        return x
    vectors = {k: np.concatenate([x[k], x[k].conj()], -1) for k in "wBC"}
    columns = {k: np.concatenate([x[k], x[k].conj()], -2) for k in "PQ"}
    return {**x, **vectors, **columns}


@implements(
    "dplr_kernel_aliased",
    framework="torch",
    dtypes=("complex64",),
    kinds="complex",
    only=with_conjugates,
    layout="n, n r, n r, d n, d n, d -> d l",
)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """The property K of a layer with these parameters; it keeps log dt, and Cᵀ conjugated."""
    omega = layer._make_omega_l(l)
    order = [i if i == 0 else l - i for i in range(l)]
    parameters = {"p": P[:, 0], "q": Q[:, 0], "lambda_": w[None, None], "B": B, "Ct": C.conj()}
    here = SimpleNamespace(
        **parameters, log_step=dt.log(), omega_l=omega, l_max=l, ifft_order=torch.tensor(order)
    )
    here._compute_roots = lambda: layer.S4Layer._compute_roots(here)
    return layer.S4Layer.K.fget(here)[0].to(B.dtype)


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
