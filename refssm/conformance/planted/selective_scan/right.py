"""Right parts of selective scans into which bugs are planted."""

import numpy as np

from refssm.conformance.planted.selective_scan.forms import batch_of


def discrete(u, dt, A, B, C, x0):
    """e^{dt A} and dt (u B), both (…, l, n) with the axes of all arguments."""
    shape = (*batch_of(u, dt, A, B, C, x0), *B.shape[-2:])
    decay = np.exp(dt[..., None] * A[..., None, :])
    drive = dt[..., None] * (u[..., None] * B)
    return np.broadcast_to(decay, shape), np.broadcast_to(drive, shape)


def segmented(a, b, x0, resets):
    """The associative scan by log₂ l passes: a reset on the right drops all on its left."""
    a = a.astype(np.result_type(a, b, x0))
    first = np.where(resets[..., :1, None], 0, a[..., :1, :] * x0[..., None, :]) + b[..., :1, :]
    x = np.concatenate([first, b[..., 1:, :]], axis=-2).astype(a.dtype)
    gone, step = np.broadcast_to(resets[..., None] != 0, x.shape).copy(), 1
    while step < x.shape[-2]:
        kept = ~gone[..., step:, :]
        x[..., step:, :] += np.where(kept, a[..., step:, :] * x[..., :-step, :], 0)
        a[..., step:, :] = np.where(kept, a[..., step:, :] * a[..., :-step, :], 0)
        gone[..., step:, :] |= gone[..., :-step, :]
        step *= 2
    return x


def masked_sums(dt):
    """s_kj as the cumulative sum over k of dt_k where k > j: (…, k, j), j = −1 the start."""
    l = dt.shape[-1]
    below = np.arange(l)[:, None] >= np.arange(l + 1)
    return np.cumsum(np.where(below, dt[..., :, None], 0), axis=-2)


def differences(dt):
    """s_kj = S_k − S_j of a chunk's cumulative sum: steps much smaller than S lose digits."""
    S = np.cumsum(dt, axis=-1)
    return S[..., :, None] - np.concatenate([0 * S[..., :1], S], axis=-1)[..., None, :]
