# pyright: reportMissingImports=false
"""S4's CUDA extension: the Vandermonde kernel over conjugate pairs, with its own gradient.

Its Cauchy sums are over conjugate pairs, too, so they are other work than `cauchy_kernel` and the
resolvents of `dplr_kernel`, which are not here.
"""

import torch
from structured_kernels import vand_log_mult_sym_bwd, vand_log_mult_sym_fwd

from refssm.testing import implements

MODES = tuple(1 << k for k in range(3, 9))  # that the extension has


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, x, l):
        ctx.save_for_backward(v, x)
        return vand_log_mult_sym_fwd(v, x, l)

    @staticmethod
    def backward(ctx, *cotangents):
        return *vand_log_mult_sym_bwd(*ctx.saved_tensors, cotangents[0].contiguous()), None


@implements(
    "vandermonde_kernel_real",
    framework="torch",
    device="cuda",
    vjp=True,
    dtypes=("complex64",),
    layout="d n, d n -> d l",
)
def vandermonde_kernel_real(v, x, *, l):
    """2 Re Σ v e^{x k} for 8 to 256 modes, a power of two."""
    if v.shape[-1] not in MODES or l == 0 or not (v.is_complex() and x.is_complex()):
        raise NotImplementedError("8 to 256 complex modes, a power of two, and at least one step")
    v, x = torch.broadcast_tensors(v, x)
    return _Kernel.apply(v.contiguous(), x.contiguous(), l)
