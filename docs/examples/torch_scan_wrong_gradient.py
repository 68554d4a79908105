"""A PyTorch scan with a gradient by hand that is right for real numbers and wrong for complex."""

import torch

from refssm.testing import implements


class Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        x = torch.zeros_like(b[..., 0, :])
        states = []
        for k in range(b.shape[-2]):
            x = a[..., k, :] * x + b[..., k, :]
            states.append(x)
        x = torch.stack(states, -2)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, dx):
        a, x = ctx.saved_tensors
        db = torch.empty_like(dx)
        g = torch.zeros_like(dx[..., 0, :])
        for k in reversed(range(dx.shape[-2])):
            g = dx[..., k, :] + g
            db[..., k, :] = g
            g = a[..., k, :] * g  # the bug: conj(a) is right
        before = torch.cat([torch.zeros_like(x[..., :1, :]), x[..., :-1, :]], -2)
        return db * before, db  # the same bug: da is db conj(before)


@implements("linear_scan", framework="torch", vjp=True, dtypes=("float32", "complex64"))
def scan(a, b):
    dtype = torch.result_type(a, b)
    return Scan.apply(a.to(dtype), b.to(dtype))
