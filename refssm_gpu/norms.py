"""Mirrors of refssm.norms: array code, a few passes over memory."""

from refssm.norms import GATED_RMS_NORM, L2_NORM, RMS_NORM_GATED
from refssm_gpu._algebra.activations import silu, silu_slope
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror

EPSILON = 1e-5  # under the root, as in refssm.norms


@mirror(RMS_NORM_GATED)
def rms_norm_gated(x, z, w, *, eps=EPSILON):
    return w * (x * _rate(x, eps)) * silu(z)


@mirror(RMS_NORM_GATED)
def rms_norm_gated_vjp(dy, x, z, w, *, eps=EPSILON):
    rate, open_ = _rate(x, eps), silu(z)
    y = x * rate
    dx = _projected(dy * w * open_, y, rate)
    return unbroadcast_each((dx, dy * w * y * silu_slope(z), dy * y * open_), (x, z, w))


@mirror(GATED_RMS_NORM)
def gated_rms_norm(x, z, w, *, eps=EPSILON, group=None):
    s = _in_groups(x * silu(z), group)
    return w * _joined(s * _rate(s, eps))


@mirror(GATED_RMS_NORM)
def gated_rms_norm_vjp(dy, x, z, w, *, eps=EPSILON, group=None):
    open_ = silu(z)
    s = _in_groups(x * open_, group)
    rate = _rate(s, eps)
    y = s * rate
    ds = _joined(_projected(_in_groups(dy * w, group), y, rate))
    return unbroadcast_each((ds * open_, ds * x * silu_slope(z), dy * _joined(y)), (x, z, w))


@mirror(L2_NORM)
def l2_norm(x, *, eps=1e-6):
    return x * _rate(x, eps, 1)


@mirror(L2_NORM)
def l2_norm_vjp(dy, x, *, eps=1e-6):
    rate = _rate(x, eps, 1)
    return unbroadcast_each((_projected(dy, x * rate, rate, 1),), (x,))


def _rate(x: Array, eps: float, count: int = 0) -> Array:
    """1/√(Σ x²/count + ε) over the last axis, of which count is the length if it is not given."""
    xp, count = namespace(x), count or max(x.shape[-1], 1)
    return 1 / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) / count + eps)


def _projected(g: Array, y: Array, rate: Array, count: int = 0) -> Array:
    """Back through x · rate."""
    xp, count = namespace(g), count or max(g.shape[-1], 1)
    return rate * (g - y * (xp.sum(g * y, axis=-1, keepdims=True) / count))


def _in_groups(x: Array, group: int | None) -> Array:
    """The last axis as groups of channels."""
    n = x.shape[-1]
    size = group or n or 1
    return namespace(x).reshape(x, (*x.shape[:-1], n // size, size))


def _joined(x: Array) -> Array:
    """The groups side by side again."""
    return namespace(x).reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
