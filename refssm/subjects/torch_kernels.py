# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""Sums over modes in PyTorch: kernels of S4, S4D and HOPE on a CPU, without compilation.

One row after another, because an array of nodes times modes should fit the cache; gradients make
that array again. The Vandermonde kernel has √l exponentials per mode and a product of matrices.
"""

import math

import torch
from torch.utils.checkpoint import checkpoint

from refssm.testing import implements

DECLARED = {"framework": "torch", "vjp": True}
DPLR = {**DECLARED, "layout": "d n, d n r, d n r, d n, d n, d -> d l"}


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


def _bilinear(w, P, Q, B, dt):
    """I − Ā and B̄: (I − ½dt A)⁻¹ times −dt A and dt B."""
    A, dt = torch.diag_embed(w) - P @ Q.mH, dt[:, None, None]
    right = torch.cat([-dt * A, (dt * B[..., None]).expand(*A.shape[:-1], 1)], -1)
    one = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    solved = torch.linalg.solve(one - dt / 2 * A, right)
    return solved[..., :-1], solved[..., -1]


@implements("dplr_kernel", **DPLR)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """C Ā^{ab} times Ā^c B̄: heads times places in blocks, by powers of Ā.

    By doubling in the form I − Ā^m, because products of Ā itself would lose slow modes: about
    2 log₂ l products of matrices per system, no transform, and no poles.
    """
    rows = max(map(len, (w, P, Q, B, C, dt)))
    kind = sum(a.flatten()[:1].sum() for a in (w, P, Q, B, C, dt)).dtype
    w, P, Q, B, C = (a.to(kind).expand(rows, *a.shape[1:]) for a in (w, P, Q, B, C))
    E, places = _bilinear(w, P, Q, B, dt.expand(rows))
    places, heads, block = places[:, None], C[:, None], 1
    while block * block < l:  # E = I − Ā^block
        places = torch.cat([places, places - places @ E.mT], 1)
        E, block = 2 * E - E @ E, 2 * block
    while heads.shape[1] * block < l:
        heads = torch.cat([heads, heads - heads @ E], 1)
        E = 2 * E - E @ E
    return (heads @ places.mT).flatten(1)[:, :l]


def _spectrum(w, P, Q, B, C, dt, below, above):
    """2 C (diag D + (1 + z) P Qᴴ)⁻¹ B, D = 2 (1 − z)/dt − (1 + z) w, at the roots of unity."""
    kind, rank = below.dtype, P.shape[-1]
    R = torch.reciprocal(2 / dt * below - above * w[:, None])  # (n, l)
    left = torch.cat([C[:, None].to(kind), Q.conj().to(kind)], 1).mT
    right = torch.cat([B[:, None].to(kind), P.to(kind)], 1).mT
    k = ((left[:, None] * right).flatten(0, 1) @ R).unflatten(0, (1 + rank, 1 + rank))
    if rank == 0:
        return 2 * k[0, 0]
    if rank == 1:
        return 2 * (k[0, 0] - above * k[0, 1] * k[1, 0] / (1 + above * k[1, 1]))
    capacitance = torch.eye(rank, device=k.device) + (above * k[1:, 1:]).movedim(-1, 0)
    solved = torch.linalg.solve(capacitance, k[1:, 0].mT)  # (l, r)
    return 2 * (k[0, 0] - above * (k[0, 1:].mT * solved).sum(-1))


@implements("dplr_kernel_aliased", **DPLR)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Resolvents that share poles, row by row, Woodbury's identity, and one transform."""
    c, s = half_circle(l, real_type(w), w.device)
    below, above = 2 * s * torch.complex(s, c), 2 * c * torch.complex(c, -s)
    arguments = w, P, Q, B, C, dt
    k = torch.fft.ifft(by_rows(lambda *row: _spectrum(*row, below, above), *arguments))
    return k if any(a.is_complex() for a in arguments) else k.real
