# pyright: reportMissingImports=false
"""Sums over modes in PyTorch: kernels of S4, S4D and HOPE on a CPU, without compilation.

One row after another, because an array of nodes times modes should fit the cache; gradients make
that array again. The Vandermonde kernel has √l exponentials per mode and a product of matrices.
"""

import math

import torch
from torch.utils.checkpoint import checkpoint

from refssm.testing import implements

DECLARED = {"framework": "torch", "vjp": True}


def by_rows(row_of, *arrays):
    """`row_of` for each row of the arrays; its intermediate results are not stored."""
    rows = max(map(len, arrays))
    pairs = zip(*(a.expand(rows, *a.shape[1:]) for a in arrays), strict=True)
    return torch.stack([checkpoint(row_of, *row, use_reentrant=False) for row in pairs])


def real_type(x):
    """The real type of the same precision."""
    return x.real.dtype


def half_circle(l, precision, device=None):
    """Cosine and sine of θ/2 = πj/l, rounded once."""
    half = math.pi * torch.arange(l, dtype=torch.float64, device=device) / max(l, 1)
    return half.cos().to(precision), half.sin().to(precision)


@implements("vandermonde_kernel_real", layout="d n, d n -> d l", **DECLARED)
def vandermonde_kernel_real(v, x, *, l):
    """e^{x (ab + c)} = e^{x a b} e^{x c}: heads of blocks times places in them."""
    block = math.isqrt(max(l - 1, 0)) + 1
    steps = torch.arange(block, dtype=real_type(x), device=x.device)[:, None]
    kind = torch.result_type(v, x)
    heads = (v[:, None] * torch.exp(x[:, None] * (block * steps))).to(kind)
    places = torch.exp(x[:, None] * steps).to(kind)
    if kind.is_complex:
        heads = torch.cat([heads.real, -heads.imag], -1)
        places = torch.cat([places.real, places.imag], -1)
    return 2 * (heads @ places.mT).flatten(1)[:, :l]


@implements("cauchy_kernel", layout="d n, d n, l -> d l", **DECLARED)
def cauchy_kernel(v, w, z):
    """v times the matrix 1/(z − w), row by row."""
    v = v.to(torch.promote_types(v.dtype, torch.result_type(w, z)))
    return by_rows(lambda v, w: v @ torch.reciprocal(z - w[:, None]), v, w)


@implements("resolvent_at_roots", layout="d n, d n -> d l", **DECLARED)
def resolvent_at_roots(v, a, *, l):
    """v times the matrix 1/(1 − a ω), row by row."""
    angles = -math.tau * torch.arange(l, dtype=torch.float64, device=a.device) / max(l, 1)
    z = torch.complex(*(f(angles).to(real_type(a)) for f in (torch.cos, torch.sin)))
    return by_rows(lambda v, a: v @ torch.reciprocal(1 - a[:, None] * z), v.to(z.dtype), a)


@implements("hope_transfer", layout="d n, d -> d l", **DECLARED)
def hope_transfer(h, dt, *, l):
    """Horner's rule at 1/z' on the unit circle."""
    c, s = half_circle(l, real_type(h), h.device)

    def row(h, dt):
        x = dt * c
        scale = 1 / (x * x + s * s)
        p = torch.complex((x - s) * (x + s) * scale, -2 * x * s * scale)
        k = torch.zeros_like(p)
        for h_n in reversed(h.unbind()):
            k = (k + h_n) * p
        return k

    return by_rows(row, h, dt)
