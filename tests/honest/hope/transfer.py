"""Honest HOPE transfer functions: powers by products, angles, Horner's rule, transforms.

They compute in the precision of the arguments unless the docstring names another; the nodes have
errors of one rounding.
"""

# pyright: reportMissingImports=false
# (torch may be absent)

import finufft
import numpy as np

from honest import Honest
from refssm._declaration.implements import Budget
from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.roots import roots_of_unity, turned
from refssm.hope import HOPE_TRANSFER


def complex_type(*arguments):
    """The type of a transfer function."""
    return np.result_type(*arguments, np.complex64)


def delays(h, dt, l):
    """1/z' by the half angles in the precision of the arguments."""
    c, s = turned(np.arange(l), 2 * l, np.finfo(np.result_type(h, dt)).dtype.type)
    x = dt[..., None] * c
    return (x - 1j * s) / (x + 1j * s)


def warped_angles(h, dt, l):
    """θ' in double precision."""
    c, s = turned(np.arange(l), 2 * l, np.float64)
    return 2 * np.arctan2(s, dt.astype(float)[..., None] * c)


def multiplied(h, dt, *, l):
    """One parameter after another; each power is the previous one times p."""
    p = delays(h, dt, l)
    power, G = np.ones_like(p), np.zeros((), complex_type(h, dt))
    for i in range(h.shape[-1]):
        power = power * p
        G = G + h[..., i, None] * power
    return G + 0 * p * h[..., :1].sum(-1, keepdims=True)  # an empty sum has a shape


def horner(h, dt, *, l):
    """p (h_0 + p (h_1 + …))."""
    p = delays(h, dt, l)
    G = 0 * p * h[..., :1].sum(-1, keepdims=True)
    for i in range(h.shape[-1] - 1, -1, -1):
        G = (G + h[..., i, None]) * p
    return G


def by_angles(h, dt, *, l):
    """e^{−i(i+1)θ'}, the angles in the precision of the arguments."""
    kind = np.finfo(np.result_type(h, dt)).dtype
    phases = warped_angles(h, dt, l).astype(kind)[..., None] * np.arange(
        1, h.shape[-1] + 1, dtype=kind
    )
    return (h[..., None, :] * (np.cos(phases) - 1j * np.sin(phases))).sum(-1)


def cumulated(h, dt, *, l):
    """Powers by a cumulative product, then a matrix product."""
    p = delays(h, dt, l)
    E = np.cumprod(np.broadcast_to(p[..., None], (*p.shape, h.shape[-1])), axis=-1)
    return (E @ h[..., None].astype(E.dtype))[..., 0]


def giant_steps(h, dt, *, l):
    """i = 8a + b: the parameters in rows of eight, the rows by powers of p⁸."""
    p, n = delays(h, dt, l), h.shape[-1]
    rows = np.concatenate([h, np.zeros((*h.shape[:-1], -n % 8), h.dtype)], axis=-1)
    small = p[..., None] ** np.arange(1, 9)
    large = (p**8)[..., None] ** np.arange(rows.shape[-1] // 8)
    rows = rows.reshape(*rows.shape[:-1], -1, 8)
    inner = np.einsum("...ab,...lb->...la", rows, small)
    return (inner * large).sum(-1).astype(complex_type(h, dt))


def conjugates(h, dt, *, l):
    """Half of the nodes for a real h; the others are their conjugates."""
    G = HOPE_TRANSFER.reference(h, dt, l=l)
    if np.iscomplexobj(h):
        return G
    half = G[..., : l // 2 + 1]
    return np.concatenate([half, half[..., 1 : (l + 1) // 2][..., ::-1].conj()], axis=-1)


def by_the_map(h, dt, *, l):
    """1/z' by the quotient of the bilinear map, in double precision: 1 − dt and ω cancel."""
    omega, step = roots_of_unity(l, np.float64).conj(), dt.astype(float)[..., None]
    p = ((step - 1) * omega + step + 1) / ((step + 1) * omega + step - 1)
    G = (h[..., None, :] * p[..., None] ** np.arange(1, h.shape[-1] + 1)).sum(-1)
    return G.astype(complex_type(h, dt))


def near_one(x):
    """The case with dt between ¼ and 4, where cancellation stays within tolerance."""
    return {**x, "dt": np.clip(x["dt"], 0.25, 4).astype(x["dt"].dtype)}


def finite(*arguments):
    """Declines NaN, which finufft refuses."""
    if not all(np.isfinite(x).all() for x in arguments):
        raise NotImplementedError("finufft takes finite numbers")


def nonuniform(h, dt, *, l):
    """A nonuniform FFT of type 2, row by row, to about the precision of the arguments."""
    finite(h, dt)
    n, theta = h.shape[-1], warped_angles(h, dt, l)
    batch = np.broadcast_shapes(h.shape[:-1], dt.shape)
    rows, theta = with_batch(h.astype(complex), 1, batch), np.broadcast_to(theta, (*batch, l))
    G = np.zeros((*batch, l), complex)
    for i in np.ndindex(*batch) if n and l else []:
        made = finufft.nufft1d2(theta[i], rows[i], eps=_eps(h, dt), isign=-1, nthreads=1)
        G[i] = np.exp(-1j * (1 + n // 2) * theta[i]) * made
    return G.astype(complex_type(h, dt))


def nonuniform_vjp(dk, h, dt, *, l):
    """The adjoint, of type 1; ∂G/∂dt is i sin θ'/dt times the transform of (i + 1) h."""
    finite(dk, h, dt)
    n, theta = h.shape[-1], warped_angles(h, dt, l)
    sent = np.broadcast_to(dk, (*np.broadcast_shapes(h.shape[:-1], dt.shape), l)).astype(complex)
    spread = np.broadcast_to(theta, sent.shape)
    dh = np.zeros((*sent.shape[:-1], n), complex)
    for i in np.ndindex(*sent.shape[:-1]) if n and l else []:
        weights = sent[i] * np.exp(1j * (1 + n // 2) * spread[i])
        dh[i] = finufft.nufft1d1(spread[i], weights, n, eps=_eps(h, dt), isign=1, nthreads=1)
    moments = nonuniform((h * np.arange(1, n + 1)).astype(complex), dt.astype(float), l=l)
    slope = np.sin(theta) / dt.astype(float)[..., None]
    ddt = (sent * (1j * slope * moments).conj()).sum(-1)
    return unbroadcast_each((dh, ddt), (h, dt))


def _eps(*arguments):
    return 1e-14 if np.finfo(np.result_type(*arguments)).bits == 64 else 1e-7


def differences_vjp(dk, h, dt, *, l):
    """∂p^j/∂dt = j (p^{j−1} − p^{j+1})/(2 dt), from the transforms of dk that dh needs anyway.

    Where p is near ±1, the difference cancels: at most nodes if dt is far from 1, else at the ends.
    """
    kind, n = complex_type(dk, h, dt), h.shape[-1]
    p = delays(h.astype(complex), dt.astype(float), l)
    met = (dk[..., None] * (p[..., None] ** np.arange(n + 2)).conj()).sum(-2)
    moved = np.arange(1, n + 1) * (met[..., :-2] - met[..., 2:])
    ddt = (h.conj() * moved).sum(-1) / (2 * dt)
    return unbroadcast(met[..., 1:-1].astype(kind), h), unbroadcast(ddt.astype(kind), dt)


def torch_vjp(dk, h, dt, *, l):
    """PyTorch's autodiff of Horner's rule, in double precision."""
    import torch

    c, s = (torch.from_numpy(x) for x in turned(np.arange(l), 2 * l, np.float64))
    leaves = [torch.tensor(h.astype(complex), requires_grad=True)]
    leaves.append(torch.tensor(dt.astype(float), requires_grad=True))
    x = leaves[1][..., None] * c
    p = torch.complex(x, -s.expand_as(x)) / torch.complex(x, s.expand_as(x))
    G = p * 0 * (leaves[0][..., :1].sum(-1, keepdim=True))
    for i in range(h.shape[-1] - 1, -1, -1):
        G = (G + leaves[0][..., i, None]) * p
    sent = torch.tensor(np.ascontiguousarray(dk).astype(complex)).expand_as(G)
    gradients = torch.autograd.grad(G, leaves, sent)
    return unbroadcast_each([g.resolve_conj().numpy() for g in gradients], (h, dt))


NAME = HOPE_TRANSFER.name
FORMS = (multiplied, horner, by_angles, cumulated, giant_steps, conjugates)

IMPLEMENTATIONS = [
    *(Honest(NAME, form.__name__, form) for form in FORMS),
    Honest(NAME, "by_the_map", by_the_map, only=near_one),
    # a nonuniform transform takes angles, and a rounding of θ' counts n times
    # ddt takes two transforms, each with an error of 1e-14 of a norm: 90 u in double precision
    Honest(NAME, "finufft", nonuniform, nonuniform_vjp, accuracy=Budget(C=256)),
    Honest(
        NAME,
        "differences",
        HOPE_TRANSFER.reference,
        differences_vjp,
        only=near_one,
        # at the first nodes p^{j−1} − p^{j+1} cancels, by l/π where dk has no others
        accuracy=Budget(C=1024),
    ),
    Honest(NAME, "torch", HOPE_TRANSFER.reference, torch_vjp, needs="torch"),
]
