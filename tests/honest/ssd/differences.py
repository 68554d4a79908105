"""Gradients of state-space duality by differences of cumulative sums, chunk by chunk.

As what autodiff makes of chunks whose weights are e^{c_i − c_j}: entries of dlog_a that are small
beside others of their row lose digits.
"""

import numpy as np

from honest.ssd.attention import differences


def by_differences(size):
    """The gradients, `size` steps at a time: the states before all chunks, then backwards."""

    def whole(dy, dS, x, log_a, B, C, S0, resets, chunk):
        del resets, chunk
        windows = [slice(start, start + size) for start in range(0, x.shape[-2], size)]
        pieces, S, gradients = [], S0, []
        for w in windows:
            pieces.append((x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :], S))
            S = _ended(*pieces[-1])
        for w, piece in zip(reversed(windows), reversed(pieces), strict=True):
            *told, dS = _pulled_back(dy[..., w, :], dS, *piece)
            gradients.append(told)
        axes = (-2, -1, -2, -2)
        joined = zip(zip(*reversed(gradients), strict=True), axes, strict=True)
        return (*(np.concatenate(parts, axis=axis) for parts, axis in joined), dS)

    return whole


def _turned(a):
    return np.swapaxes(a, -1, -2)


def _to_end(log_a):
    """e^{c_l − c_j} of each step, and e^{c_l}."""
    c = np.cumsum(log_a, axis=-1)
    return np.exp(c[..., -1:] - c)[..., None], np.exp(c[..., -1])[..., None, None]


def _ended(x, log_a, B, C, S):
    """The state after a chunk."""
    del C
    weights, kept = _to_end(log_a)
    return kept * S + _turned(weights * x) @ B


def _pulled_back(dy, dS, x, log_a, B, C, S):
    """Gradients of one chunk, and of the state before it."""
    seen = np.tri(log_a.shape[-1], dtype=bool)
    L = np.where(seen, np.exp(differences(log_a)), 0)
    dyx, M = dy @ _turned(x).conj(), L * (C @ _turned(B))
    scores, dT = L.conj() * dyx, M.conj() * dyx
    dx, dB, dC = _turned(M).conj() @ dy, _turned(scores) @ C.conj(), scores @ B.conj()
    dc = dT.sum(-1) - dT.sum(-2)
    # what the state before gives to the outputs
    read = np.exp(np.cumsum(log_a, axis=-1))[..., None]
    sent = read.conj() * dy
    dc = dc + ((read * (C @ _turned(S))).conj() * dy).sum(-1)
    dC, before = dC + sent @ S.conj(), _turned(sent) @ C.conj()
    # the state after the chunk
    weights, kept = _to_end(log_a)
    added = B.conj() @ _turned(dS)
    dx, dB = dx + weights.conj() * added, dB + (weights * x).conj() @ dS
    by_weights = ((weights * x).conj() * added).sum(-1)
    dc = dc - by_weights
    dc[..., -1] += by_weights.sum(-1) + ((kept * S).conj() * dS).sum((-2, -1))
    dlog_a = np.cumsum(dc[..., ::-1], axis=-1)[..., ::-1]
    return dx, dlog_a, dB, dC, before + kept.conj() * dS
