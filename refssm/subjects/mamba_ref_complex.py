# pyright: reportMissingImports=false
"""Mamba's `selective_scan_ref` with complex A, whose output is twice the real part."""

import torch

import refssm.subjects.triton_interpreter  # noqa: F401  (its package imports kernels)
from refssm.subjects.clones import module
from refssm.testing import implements

scan = module("mamba", "mamba_ssm.ops.selective_scan_interface").selective_scan_ref


def real_inputs(x):
    """The case with real inputs, if it has a step: the function has no complex ones."""
    u = x["u"].copy()
    u.imag = 0
    return {**x, "u": u} if u.shape[-1] else None


@implements(
    "selective_scan",
    framework="torch",
    dtypes=("complex64",),
    kinds="complex",
    only=real_inputs,
    layout="b d l, b d l, d n, b n l, b n l -> b d l",
)
def selective_scan(u, dt, A, B, C):
    """Half the output for C is the real part, half that for -i C the imaginary part."""
    B, *Cs = (torch.view_as_real(v).flatten(-2) for v in (B, C, -1j * C))
    return torch.complex(*(scan(u.real, dt, A, B, v) / 2 for v in Cs))
