"""Softmax over the last t steps, with its gradient: arrays (…, g, l, n), a bias (g, t).

The queries are those of the last l keys. All pairs of steps are computed; those out of the window
have the weight 0.
"""

import numpy as np


def distances(l, m):
    """i − j of l queries, which belong to the last of m keys: (l, m)."""
    return np.arange(m - l, m)[:, None] - np.arange(m)


def _transposed(x):
    return np.swapaxes(x, -1, -2)


def _kept(there, x):
    """x, and 0 elsewhere."""
    return np.where(there, x, x.dtype.type(0))


def weights(q, k, bias, seen=None, reads=True):
    """w_ij = e^{s_ij}/Σ_j e^{s_ij}; keys where `seen` (…, 1, 1, m) is 0 do not count, nor pairs of
    steps where `reads` is false.

    The largest score of a row is subtracted first, so no exponential overflows.
    """
    if not bias.shape[-1]:
        raise ValueError("attention: `bias` has no distances, wanted t ≥ 1")
    t, away = bias.shape[-1], np.asarray(distances(q.shape[-2], k.shape[-2]), like=q)
    there = (away >= 0) & (away < t) & reads
    there = there if seen is None else there & (seen != 0)
    s = q @ _transposed(k) + bias[..., np.clip(away, 0, t - 1)]
    if s.shape[-1]:
        first = np.argmax(np.where(there, s, s.dtype.type(-np.inf)), axis=-1)
        s = s - np.take_along_axis(s, first[..., None], axis=-1)
    e = np.exp(_kept(there, s))
    e = _kept(there, e if seen is None else e * seen)
    return e / e.sum(-1, keepdims=True)


def attended(q, k, v, bias, seen=None, reads=True):
    """y = w v, and w."""
    w = weights(q, k, bias, seen, reads)
    return _mean(w, v), w


def _mean(w, v):
    """w v. What is not finite does not reach steps where its weight is 0, though 0 · NaN is NaN."""
    if np.isfinite(v).all():
        return w @ v
    terms = w[..., None] * v[..., None, :, :]
    return _kept((w != 0)[..., None], terms).sum(-2)


def attended_vjp(dy, y, w, q, k, v, bias):
    """Gradients of q, k, v and bias, from rest: ds_ij = w_ij (dy_i · v_j − dy_i · y_i)."""
    ds = w * (dy @ _transposed(v) - (dy * y).sum(-1, keepdims=True))
    return ds @ k, _transposed(ds) @ q, _transposed(w) @ dy, _along_distances(ds, bias)


def _along_distances(ds, bias):
    """Σ_i ds_{i,i−d} over the batch, for each head and each distance d."""
    (g, t), l = bias.shape, ds.shape[-1]
    if not l:
        return 0 * bias
    total = ds.reshape(-1, g * l * l).sum(0).reshape(g, l, l)
    rows = np.arange(l, like=ds)[:, None]
    columns = rows - np.arange(t, like=ds)
    return _kept(columns >= 0, total[..., rows, np.maximum(columns, 0)]).sum(-2)
