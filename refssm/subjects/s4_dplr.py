# pyright: reportMissingImports=false
"""s4's SSMKernelDPLR from its own parameters; the gradient is by C̃ = C (I − Ā^l), as it trains."""

import torch

from refssm.adapters import halves, log_dt, neg_exp
from refssm.subjects.clones import module
from refssm.testing import implements

SSMKernelDPLR = module("s4", "models.s4.s4").SSMKernelDPLR
DECLARED = {
    "framework": "torch",
    "dtypes": ("complex64", "complex128"),
    "adapters": (log_dt(), neg_exp("w"), halves()),
    "layout": "d n, d n r, d n r, d n, d n, d -> d l",
}


class Held(SSMKernelDPLR):
    """The module with tensors for its parameters, and Q of its own in place of P*."""

    def __init__(self, theta, P, Q, B, C, dt, l_kernel, l_max):
        torch.nn.Module.__init__(self)
        rows = max(map(len, (theta, P, Q, B, C, dt)))
        theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
        P, Q = (x.expand(rows, -1, -1).permute(2, 0, 1) for x in (P, Q))
        self.H, self.N, self.rank, self.channels = rows, B.shape[1], len(P), 1
        self.repeat, self.backend, self.verbose = 1, "naive", False
        self.is_real = self.dt_fast = self.bandlimit = None
        self.dt_transform, self.real_transform, self.imag_transform = "exp", "exp", "none"
        self.inv_dt, self.A_real, self.A_imag = dt[:, None].expand(rows, 1), theta.real, -theta.imag
        self.B, self.P = torch.view_as_real(B)[None], torch.view_as_real(P)
        self.C, self.Q = torch.view_as_real(C)[None].clone(), Q.conj()
        self.l_kernel, self.l_max = torch.tensor(l_kernel), l_max

    def _get_params(self, rate=1.0):
        return *super()._get_params(rate)[:5], self.Q


def some(x):
    """The case if it has a step and a low-rank part."""
    return x if x["l"] and x["P"].shape[-1] else None


@implements("dplr_kernel", only=some, **DECLARED)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """The first call, which replaces C by C̃ without a gradient."""
    return Held(w, P, Q, B, C, dt, 0, l)(L=l)[0][0]


@implements("dplr_kernel_aliased", only=some, vjp=True, **DECLARED)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Every other call, where C is C̃."""
    return Held(w, P, Q, B, C, dt, l, l)(L=l)[0][0]
