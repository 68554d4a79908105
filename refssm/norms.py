"""Norms of signals (…, l, h) over the last axis, or over all others, with their gradients.

y = scale (x − mean)/√(variance + ε) + shift,   ε = 1e-5: the usual number of PyTorch

First those of layers; then the operators beside a recurrence, which are judged alone: a norm with a
gate after it, with the gate before it [dao2024mamba2], and the length of queries and keys.

    x/√(mean x² + ε) · w · silu(z),    s/√(mean s² + ε) · w,  s = x silu(z),    x/√(Σ x² + ε)
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import silu, silu_vjp
from refssm.domains import channel_groups, features, floors, gates, norm_weights

EPSILON = 1e-5


def layer_norm(x, scale, shift):
    """scale (x − mean)/√(variance + ε) + shift, over the last axis."""
    return scale * _normal(x) + shift


def layer_norm_vjp(dy, x, scale):
    """Gradients of x, scale and shift."""
    y = _normal(x)
    dx = _turned(dy * scale, y, _rate(x - _mean(x)))
    return dx, _over_batch(dy * y), _over_batch(dy)


def rms_norm(x, scale):
    """scale x/√(mean of x² + ε), over the last axis."""
    return scale * (x * _rate(x))


def rms_norm_vjp(dy, x, scale):
    """Gradients of x and scale."""
    rate = _rate(x)
    y, g = x * rate, dy * scale
    return rate * (g - y * _mean(g * y)), _over_batch(dy * y)


def batch_norm(x, scale, shift):
    """scale (x − mean)/√(variance + ε) + shift; mean and variance over all axes but the last.

    Returns also mean and variance, for the averages that are used after training.
    """
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    variance = ((x - mean) ** 2).mean(axes)
    return batch_norm_fixed(x, scale, shift, mean, variance), mean, variance


def batch_norm_fixed(x, scale, shift, mean, variance):
    """The same with given mean and variance, as after training."""
    return scale * ((x - mean) / np.sqrt(variance + x.dtype.type(EPSILON))) + shift


def batch_norm_vjp(dy, x, scale):
    """Gradients of x, scale and shift."""
    axes = tuple(range(x.ndim - 1))
    centred = x - x.mean(axes)
    rate = 1 / np.sqrt((centred * centred).mean(axes) + x.dtype.type(EPSILON))
    y, g = centred * rate, dy * scale
    dx = rate * (g - g.mean(axes) - y * (g * y).mean(axes))
    return dx, _over_batch(dy * y), _over_batch(dy)


def _mean(x):
    """The mean over the last axis; 0 of no numbers."""
    return x.sum(-1, keepdims=True) / max(1, x.shape[-1])


def _rate(x, eps=EPSILON):
    """1/√(mean of x² + ε) over the last axis."""
    return 1 / np.sqrt(_mean(x * x) + x.dtype.type(eps))


def _normal(x):
    centred = x - _mean(x)
    return centred * _rate(centred)


def _turned(g, y, rate):
    """Back through (x − mean) · rate: the parts of g along 1 and along y do not count."""
    return rate * (g - _mean(g) - y * _mean(g * y))


def _over_batch(x):
    """The sum over all axes but the last."""
    return x.reshape(-1, x.shape[-1]).sum(0)


def rms_norm_gated(x, z, w, *, eps=EPSILON):
    """y_n = x_n/√(mean x² + ε) · w_n silu(z_n): the gate after the norm.

    Signature ``(n),(n),(n)->(n)``: `x` the features of one step or head, `z` their gates, `w` the
    weights; leading axes broadcast. float32, float64 or longdouble. Units: those of `w` times those
    of `z`; ε has the unit of x². `eps` is ε ≥ 0; at ε = 0 a row of zeros gives NaN.

    Raises ValueError if sizes disagree or `eps` is negative, TypeError for other types. NaN in one
    feature reaches its whole row, NaN in a gate its own output. Source: [zhang2019rms, eq. 4].

    >>> import refssm
    >>> refssm.rms_norm_gated([3.0, -1.0], [0.0, 50.0], [1.0, 2.0], eps=4.0).round(12)
    array([  0.        , -33.33333333])
    """
    return w * (x * _rate(x, eps)) * silu(z)


def rms_norm_gated_vjp(dy, x, z, w, *, eps=EPSILON):
    """With r = 1/√(mean x² + ε), y = r x and g = dy w silu(z): dx = r (g − y · mean of g y).

    dz = dy w y silu'(z) and dw = dy y silu(z). Returns `(dx, dz, dw)`, shaped like the arguments.
    """
    rate, open_ = _rate(x, eps), silu(z)
    y = x * rate
    dx = _projected(dy * w * open_, y, rate)
    return unbroadcast_each((dx, silu_vjp(dy * w * y, z), dy * y * open_), (x, z, w))


RMS_NORM_GATED = Operator(
    reference=rms_norm_gated,
    signature="(n),(n),(n)->(n)",
    inputs={"x": features, "z": gates, "w": norm_weights},
    parameters={"eps": floors},
    batch="b l, b l, ",
    traits=frozenset({"linear:w"}),
    citation="zhang2019rms, eq. 4",
    tags=(
        "FusedRMSNormGated",
        "FusedRMSNormSwishGate",
        "Qwen3NextRMSNormGated",
        "rmsnorm_fn norm_before_gate=True",
        "output norm of Gated DeltaNet",
    ),
)
rms_norm_gated = RMS_NORM_GATED.checked(rms_norm_gated)
rms_norm_gated_vjp = RMS_NORM_GATED.checked_vjp(rms_norm_gated_vjp)


def gated_rms_norm(x, z, w, *, eps=EPSILON, group=None):
    """y_n = s_n/√(mean s² + ε) · w_n, with s = x silu(z): the gate before the norm.

    Signature ``(n),(n),(n)->(n)``, types, units and errors as `rms_norm_gated`. The mean is over
    the `group` channels beside each other that n belongs to; `group` divides n, and None is all of
    them. Source: [dao2024mamba2].

    >>> import refssm
    >>> x, z = [3.0, 4.0, 5.0, 12.0], [50.0, 50.0, 50.0, 50.0]
    >>> refssm.gated_rms_norm(x, z, [1.0, 1.0, 1.0, 13.0], eps=0.0, group=2).round(4)
    array([ 0.8485,  1.1314,  0.5439, 16.9706])
    """
    s = _in_groups(x * silu(z), group)
    return w * _joined(s * _rate(s, eps))


def gated_rms_norm_vjp(dy, x, z, w, *, eps=EPSILON, group=None):
    """With r = 1/√(mean s² + ε), y = r s and g = dy w: ds = r (g − y · mean of g y) in each group.

    dx = ds silu(z), dz = ds x silu'(z) and dw = dy y. Returns `(dx, dz, dw)`, shaped like the
    arguments.
    """
    open_ = silu(z)
    s = _in_groups(x * open_, group)
    rate = _rate(s, eps)
    y = s * rate
    ds = _joined(_projected(_in_groups(dy * w, group), y, rate))
    return unbroadcast_each((ds * open_, silu_vjp(ds * x, z), dy * _joined(y)), (x, z, w))


GATED_RMS_NORM = Operator(
    reference=gated_rms_norm,
    signature="(n),(n),(n)->(n)",
    inputs={"x": features, "z": gates, "w": norm_weights},
    parameters={"eps": floors, "group": channel_groups},
    batch="b l, b l, ",
    traits=frozenset({"linear:w"}),
    citation="dao2024mamba2",
    tags=(
        "MambaRMSNormGated",
        "Zamba2RMSNormGated",
        "Mixer2RMSNormGated",
        "rmsnorm_fn norm_before_gate=False group_size",
        "gated norm of Mamba-2",
    ),
)
gated_rms_norm = GATED_RMS_NORM.checked(gated_rms_norm)
gated_rms_norm_vjp = GATED_RMS_NORM.checked_vjp(gated_rms_norm_vjp)


def l2_norm(x, *, eps=1e-6):
    """y_n = x_n/√(Σ x² + ε): a query or a key of length at most 1.

    Signature ``(n)->(n)``: `x` one query or key; leading axes are its batch. float32, float64 or
    longdouble. The result has no unit; ε has the unit of x². `eps` is ε ≥ 0; at ε = 0 a row of
    zeros gives NaN.

    Raises ValueError if `eps` is negative, TypeError for other types. Source: [henry2020query].

    >>> import refssm
    >>> refssm.l2_norm([3.0, 4.0], eps=11.0)
    array([0.5       , 0.66666667])
    """
    return x * _inverse_length(x, eps)


def l2_norm_vjp(dy, x, *, eps=1e-6):
    """With r = 1/√(Σ x² + ε) and y = r x: dx = r (dy − y Σ dy y).

    Returns `(dx,)`, shaped like `x`.
    """
    rate = _inverse_length(x, eps)
    y = x * rate
    return unbroadcast_each((rate * (dy - y * (dy * y).sum(-1, keepdims=True)),), (x,))


L2_NORM = Operator(
    reference=l2_norm,
    signature="(n)->(n)",
    inputs={"x": features},
    parameters={"eps": floors},
    batch="b l",
    citation="henry2020query",
    tags=("l2norm", "l2norm_fwd", "use_qk_l2norm_in_kernel", "normalized queries and keys"),
)
l2_norm = L2_NORM.checked(l2_norm)
l2_norm_vjp = L2_NORM.checked_vjp(l2_norm_vjp)


def _inverse_length(x, eps):
    """1/√(Σ x² + ε) over the last axis."""
    return 1 / np.sqrt((x * x).sum(-1, keepdims=True) + x.dtype.type(eps))


def _in_groups(x, group):
    """The last axis as groups of channels: (…, n/group, group)."""
    n = x.shape[-1]
    size = group or n or 1  # None and n = 0: one group, or none
    return x.reshape((*x.shape[:-1], n // size, size))


def _joined(x):
    """The groups side by side again: (…, n)."""
    return x.reshape((*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _projected(g, y, rate):
    """Back through x · rate: of g the part along y counts only as far as ε matters."""
    return rate * (g - y * _mean(g * y))
