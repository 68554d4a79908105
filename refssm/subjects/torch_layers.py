# pyright: reportMissingImports=false
"""What stands before and after the recurrences, in PyTorch: a short convolution, norms."""

from torch.nn.functional import conv1d, rms_norm, silu

from refssm.subjects.torch_scans import DECLARED
from refssm.testing import implements


@implements("causal_conv1d", layout="b d l, d t, d -> b d l", **DECLARED)
def causal_conv1d(u, k, bias):
    """conv1d with one group per channel, a correlation: its weights are the taps reversed."""
    (d, t), l = k.shape, u.shape[-1]
    kind = (u.flatten()[:1] * k.flatten()[:1] * bias.flatten()[:1]).dtype
    if t == 0 or u.shape[1] != d:
        raise NotImplementedError("no taps, or channels that share an input")
    u, k, bias = (a.to(kind) for a in (u, k, bias))
    return silu(conv1d(u, k.flip(-1)[:, None], bias, padding=t - 1, groups=d)[..., :l])


@implements("rms_norm_gated", **DECLARED)
def rms_norm_gated(x, z, w, *, eps):
    """The gate after the norm."""
    return w * rms_norm(x, x.shape[-1:], eps=eps) * silu(z)


@implements("gated_rms_norm", **DECLARED)
def gated_rms_norm(x, z, w, *, eps, group):
    """The gate before the norm, group by group."""
    s = x * silu(z)
    size = group or s.shape[-1]
    if size == 0:
        return w * s
    return w * rms_norm(s.unflatten(-1, (-1, size)), (size,), eps=eps).flatten(-2)


@implements("l2_norm", **DECLARED)
def l2_norm(x, *, eps):
    """x/√(Σx² + ε)."""
    return x * (x.square().sum(-1, keepdim=True) + eps).rsqrt()
