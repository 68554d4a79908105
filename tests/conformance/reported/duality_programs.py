"""Wrong and right programs of state-space duality, written after public bug reports."""

import numpy as np

from refssm.conformance.calling.finding import operator_named


def of_groups(which):
    """A loop over time; `which(heads, groups)` says whose B and C each head reads."""

    def ssd(x, log_a, B, C):
        batch, length, heads, p = x.shape
        of = which(heads, B.shape[2])
        S = np.zeros((batch, heads, p, B.shape[-1]), np.result_type(x, log_a, B))
        y = np.empty(x.shape, np.result_type(x, log_a, B, C))
        for t in range(length):
            decay = np.exp(log_a[:, t])[..., None, None]
            S = decay * S + x[:, t, :, :, None] * B[:, t, of][:, :, None, :]
            y[:, t] = (S * C[:, t, of][:, :, None, :]).sum(-1)
        return y

    return ssd


def tiled(heads, groups):
    """Groups repeated as a whole: head h reads the group h mod G."""
    return np.arange(heads) % max(groups, 1)


def repeated(heads, groups):
    """Neighbouring heads share a group: head h reads the group h // (H/G)."""
    return np.arange(heads) // max(heads // max(groups, 1), 1)


def running(x):
    """A cumulative sum by doubling, as in a kernel."""
    s, step = x.copy(), 1
    while step < s.shape[-1]:
        s[..., step:] = s[..., step:] + s[..., :-step]
        step *= 2
    return s


def chunked(exp):
    """Chunks of state-space duality with another exponential."""

    def ssd_chunked(x, log_a, B, C, *, chunk):
        y = np.zeros(x.shape, np.result_type(x, log_a, B, C))
        S = np.zeros((*x.shape[:-2], x.shape[-1], B.shape[-1]), y.dtype)
        for k in range(0, x.shape[-2], chunk):
            w = slice(k, k + chunk)
            s = running(log_a[..., w])
            scores = C[..., w, :] @ np.swapaxes(B[..., w, :], -1, -2)
            below = np.tri(s.shape[-1], dtype=bool)
            apart = np.where(below, s[..., :, None] - s[..., None, :], -np.inf)
            inside = (exp(apart) * scores) @ x[..., w, :]
            y[..., w, :] = inside + exp(s)[..., None] * (C[..., w, :] @ np.swapaxes(S, -1, -2))
            left = exp(s[..., -1:] - s)[..., None] * x[..., w, :]
            S = exp(s[..., -1])[..., None, None] * S + np.swapaxes(left, -1, -2) @ B[..., w, :]
        return y

    return ssd_chunked


def zero_where_positive(x):
    """An exponential that is 0 where its argument is positive, meant for above the diagonal."""
    at_most_0 = np.exp(np.where(x.real <= 0, x, 0))
    return np.where(x.real <= 0, at_most_0, 0).astype(x.dtype)


def cut_off_at_zero(x):
    """An exponential whose argument is at most 0."""
    return np.exp(np.where(x.real <= 0, x, 0))


def from_state(start):
    """A loop from a first state, which `start` may change."""

    def ssd_recurrent_stateful(x, log_a, B, C, S0):
        S = np.array(start(S0), np.result_type(x, log_a, B, S0))
        y = np.zeros(x.shape, np.result_type(S, C))
        for t in range(x.shape[-2]):
            decay = np.exp(log_a[..., t])[..., None, None]
            S = decay * S + x[..., t, :, None] * B[..., t, None, :]
            y[..., t, :] = (S * C[..., t, None, :]).sum(-1)
        return y, S

    return ssd_recurrent_stateful


def of_the_first_member(S0):
    """The pointer to the state lacks the offset of the batch."""
    return np.broadcast_to(S0[:1], S0.shape)


def zeros_where_empty(x, log_a, B, C, S0):
    """Right, but an empty piece returns a state of zeros."""
    if not x.shape[-2]:
        return x.copy(), np.zeros_like(S0)
    return from_state(lambda S: S)(x, log_a, B, C, S0)


def zero_before_the_first_reset(x, log_a, B, C, resets):
    """The steps before the first reset of a packed row are zero."""
    y = operator_named("ssd_recurrent_packed").reference(x, log_a, B, C, resets)
    return np.where((np.cumsum(resets, -1) > 0)[..., None], y, 0).astype(y.dtype)
