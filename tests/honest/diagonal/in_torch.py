"""Gradients of the diagonal kernels by PyTorch's autodiff of the formulas."""

# pyright: reportMissingImports=false
# (torch may be absent)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each


def _pulled(function):
    """The VJP of a function (torch, *tensors, l) -> tensor; all arguments get one type."""

    def vjp(dk, *args, l):
        import torch

        kind = np.result_type(dk, *args)
        tensors = [torch.tensor(a.astype(kind), requires_grad=True) for a in args]
        y = function(torch, *tensors, l=l)
        sent = torch.tensor(np.ascontiguousarray(dk).astype(kind)).expand_as(y)
        gradients = torch.autograd.grad(y, tensors, sent, allow_unused=True)
        found = [
            np.zeros(a.shape, kind) if g is None else g.resolve_conj().numpy()
            for g, a in zip(gradients, args, strict=True)
        ]
        return unbroadcast_each(found, args)

    return vjp


def _powers(torch, x, l):
    return torch.exp(x[..., None] * torch.arange(l))


def _expm1(torch, z):
    """expm1 near 0, exp − 1 elsewhere.

    PyTorch's derivative of expm1 is its result + 1, which has no correct digit where e^z is small.
    """
    near = z.abs() < 1
    return torch.where(near, torch.expm1(torch.where(near, z, 0)), torch.exp(z) - 1)


def _phi1(torch, z):
    return torch.where(z == 0, 1, _expm1(torch, z) / torch.where(z == 0, 1, z))


def _held(torch, w, B, C, dt, l):
    h = dt[..., None]
    return ((C * h * _phi1(torch, h * w) * B)[..., None] * _powers(torch, h * w, l)).sum(-2)


@_pulled
def zoh(torch, w, B, C, dt, *, l):
    """Zero-order hold."""
    return _held(torch, w, B, C, dt, l)


@_pulled
def exp(torch, w, C, dt, *, l):
    """DSS-exp."""
    return _held(torch, w, 1, C, dt, l)


@_pulled
def bilinear(torch, w, B, C, dt, *, l):
    """The bilinear map through atanh h, or −1 and atanh 1/h: e^{πij} would lose digits with j."""
    h = dt[..., None] * w / 2
    beyond = h.abs() > 1
    log = 2 * torch.atanh(torch.where(beyond, 1 / torch.where(beyond, h, 1), h))
    sign = torch.where(beyond[..., None] & (torch.arange(l) % 2 == 1), -1, 1)
    v = C * dt[..., None] / (1 - h) * B
    return (v[..., None] * sign * _powers(torch, log, l)).sum(-2)


@_pulled
def softmax(torch, w, C, dt, *, l):
    """DSS-softmax by the two quotients."""
    z = dt[..., None] * w
    up, k = z.real > 0, torch.arange(l)
    x = torch.where(up, -z, z)
    E = torch.exp(x[..., None] * torch.where(up[..., None], l - 1 - k, k))
    return ((C / w * _expm1(torch, x) / _expm1(torch, l * x))[..., None] * E).sum(-2)


@_pulled
def ema(torch, delta, alpha, beta, gamma, *, l):
    """Mega's moving average by log1p and the logistic function of real numbers."""
    p, s = torch.sigmoid(delta.real), torch.sigmoid(alpha.real)
    v = p * beta * gamma / beta.shape[-1] ** 0.5
    return (v[..., None] * _powers(torch, torch.log1p(-p * s), l)).sum(-2)


@_pulled
def shift(torch, B, C, *, l):
    """The shift, lag by lag."""
    n = B.shape[-1]
    rows = [(B[..., : n - k] * C[..., k:]).sum(-1) for k in range(min(n, l))]
    K = torch.stack(rows, -1)
    return torch.nn.functional.pad(K, (0, max(0, l - n)))


def not_two(x):
    """Declines modes near dt·w = −2, where log Ā has no correct digits."""
    z = x["dt"][..., None] * x["w"]
    return None if (np.abs(z + 2) < 1).any() else x


def not_saturated(x):
    """The case with delta and alpha at most 2: above, q is near 0 and log q has no digits."""
    lowered = {n: np.minimum(x[n], 2).astype(x[n].dtype) for n in ("delta", "alpha")}
    return {**x, **lowered}
