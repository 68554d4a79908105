"""Honest norms: sums in other orders, roots by powers, wider arithmetic, PyTorch."""

# pyright: reportMissingImports=false
# (torch may be absent)

import numpy as np
from scipy.special import expit

from honest import Honest
from honest.libraries import in_libraries
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.norms import GATED_RMS_NORM, L2_NORM, RMS_NORM_GATED


def in_order(x):
    """Σ x² over the last axis, one term after the other."""
    return np.add.accumulate(x * x, -1)[..., -1:]


def by_einsum(x):
    """Σ x² as a product of the row with itself."""
    return np.einsum("...n,...n->...", x, x)[..., None]


def by_length(x):
    """The square of the 2-norm."""
    return np.linalg.norm(x, axis=-1, keepdims=True) ** 2


def in_double(x):
    """Σ x² in double precision."""
    wide = x.astype(np.result_type(x, np.float64))
    return (wide * wide).sum(-1, keepdims=True)


def as_exp(z):
    """z e^{−max(−z, 0)}/(1 + e^{−|z|})."""
    return z * np.exp(np.minimum(z, 0)) / (1 + np.exp(-np.abs(z)))


def as_expit(z):
    """z by SciPy's logistic function."""
    return z * expit(z)


def as_quotient(z):
    """z/(1 + e^{−z}), as PyTorch; infinite below −88 in single precision, and 0 then."""
    with np.errstate(over="ignore"):
        return z / (1 + np.exp(-z))


def normal(x, squares, eps, count):
    """x/√(Σ x²/count + ε), divided at the end."""
    return (x / np.sqrt(squares(x) / x.dtype.type(count) + x.dtype.type(eps))).astype(x.dtype)


def grouped(x, group):
    """The last axis as groups."""
    return x.reshape(*x.shape[:-1], x.shape[-1] // group, group)


def after(squares, gate):
    """The gate after the norm."""

    def program(x, z, w, *, eps):
        return gate(z) * w * normal(x, squares, eps, x.shape[-1])

    return program


def before(squares, gate):
    """The gate before the norm."""

    def program(x, z, w, *, eps, group):
        s = grouped(gate(z) * x, group)
        return w * normal(s, squares, eps, group).reshape(*s.shape[:-2], -1)

    return program


def alone(squares):
    """No gate."""
    return lambda x, *, eps: normal(x, squares, eps, 1)


def _normal_back(dy, x, eps, count):
    """g r − x r³ Σ(g x)/count: the textbook form."""
    rate = 1 / np.sqrt((x * x).sum(-1, keepdims=True) / count + x.dtype.type(eps))
    return dy * rate - x * (rate * (rate * (rate * ((dy * x).sum(-1, keepdims=True) / count))))


def _slope(z):
    open_ = expit(z)
    return open_ + z * open_ * expit(-z)


def after_back(dy, x, z, w, *, eps):
    """The gradient of x in the textbook form."""
    y, gate = normal(x, by_einsum, eps, x.shape[-1]), as_expit(z)
    dx = _normal_back(dy * gate * w, x, eps, x.shape[-1])
    return unbroadcast_each((dx, dy * y * w * _slope(z), dy * gate * y), (x, z, w))


def before_back(dy, x, z, w, *, eps, group):
    """The same, group by group."""
    gate = as_expit(z)
    s = gate * x
    ds = [
        _normal_back(g, part, eps, group)
        for g, part in zip(_parts(dy * w, group), _parts(s, group), strict=True)
    ]
    y = [normal(part, in_order, eps, group) for part in _parts(s, group)]
    ds, y = np.concatenate(ds, -1), np.concatenate(y, -1)
    return unbroadcast_each((ds * gate, ds * x * _slope(z), dy * y), (x, z, w))


def _parts(x, group):
    return [x[..., i : i + group] for i in range(0, x.shape[-1], group)]


def alone_back(dy, x, *, eps):
    """The textbook form."""
    return (_normal_back(dy, x, eps, 1),)


def _tensors(*arrays):
    import torch

    return [torch.from_numpy(np.array(a)) for a in arrays]


def torch_after(x, z, w, *, eps):
    """PyTorch's own functions."""
    from torch.nn import functional as F

    x, z, w = _tensors(x, z, w)
    return (F.rms_norm(x, x.shape[-1:], eps=eps) * w * F.silu(z)).numpy()


def torch_before(x, z, w, *, eps, group):
    """PyTorch's own functions, on groups."""
    from torch.nn import functional as F

    x, z, w = _tensors(x, z, w)
    s = x * F.silu(z)
    parts = F.rms_norm(s.unflatten(-1, (-1, group)), (group,), eps=eps)
    return (parts.flatten(-2) * w).numpy()


def torch_alone(x, *, eps):
    """rsqrt, as in published code."""
    (x,) = _tensors(x)
    return (x * (x.square().sum(-1, keepdim=True) + eps).rsqrt()).numpy()


PAIRS = ((in_order, as_expit), (by_einsum, as_exp), (by_length, as_quotient))
IMPLEMENTATIONS = [
    *(Honest(RMS_NORM_GATED.name, s.__name__, after(s, g)) for s, g in PAIRS),
    Honest(RMS_NORM_GATED.name, "in_double", after(in_double, as_expit), after_back),
    Honest(RMS_NORM_GATED.name, "torch", torch_after, needs="torch"),
    *(Honest(GATED_RMS_NORM.name, s.__name__, before(s, g)) for s, g in PAIRS),
    Honest(GATED_RMS_NORM.name, "in_double", before(in_double, as_expit), before_back),
    Honest(GATED_RMS_NORM.name, "torch", torch_before, needs="torch"),
    *(Honest(L2_NORM.name, s.__name__, alone(s)) for s, _ in PAIRS),
    Honest(L2_NORM.name, "in_double", alone(in_double), alone_back),
    Honest(L2_NORM.name, "torch", torch_alone, needs="torch"),
    *in_libraries("layers", [op.name for op in (RMS_NORM_GATED, GATED_RMS_NORM, L2_NORM)]),
]
