"""Linear scans in several ways, used by honest implementations of other operators too."""

import numpy as np

from refssm.conformance.planted.scan.right import hillis_steele


def sequential(a, b):
    """x ← x a + b, with the operands in the other order."""
    x = np.empty_like(b, np.result_type(a, b))
    state = np.zeros_like(b[..., 0, :], x.dtype)
    for k in range(x.shape[-2]):
        state = b[..., k, :] + state * a[..., k, :]
        x[..., k, :] = state
    return x


def tree(a, b):
    """The work-efficient associative scan: combine pairs, scan half, fill in the rest."""
    length = b.shape[-2]
    if length < 2:
        return b.astype(np.result_type(a, b))
    even, odd = (..., slice(0, length - 1, 2), slice(None)), (..., slice(1, None, 2), slice(None))
    x = np.empty(b.shape, np.result_type(a, b))
    x[odd] = tree(a[odd] * a[even], a[odd] * b[even] + b[odd])
    x[..., 0, :] = b[..., 0, :]
    rest = (..., slice(2, None, 2), slice(None))
    x[rest] = a[rest] * x[..., 1 : length - 1 : 2, :] + b[rest]
    return x


def chunked(size):
    """Chunks scanned from zero states, then the carry times products of decays."""

    def scan(a, b):
        x = np.empty(b.shape, np.result_type(a, b))
        carry = np.zeros(b[..., 0, :].shape, x.dtype)
        for start in range(0, b.shape[-2], size):
            piece = (..., slice(start, start + size), slice(None))
            x[piece] = sequential(a[piece], b[piece])
            x[piece] += np.cumprod(a[piece], axis=-2) * carry[..., None, :]
            carry = x[piece][..., -1, :]
        return x

    return scan


def matrix(a, b):
    """x = L b with L_kj = a_{j+1} … a_k; each row comes from the row above."""
    length = b.shape[-2]
    x = np.empty(b.shape, np.result_type(a, b))
    row = np.zeros((*b.shape[:-2], length, b.shape[-1]), a.dtype)
    for k in range(length):
        row *= a[..., k : k + 1, :]
        row[..., k, :] = 1
        past = (..., slice(0, k + 1), slice(None))  # not 0 · b beyond: NaN would come back in time
        x[..., k, :] = np.einsum("...jn,...jn->...n", row[past], b[past])
    return x


def entrywise(a, b):
    """A Python loop over every number."""
    x = np.empty(b.shape, np.result_type(a, b))
    for i in np.ndindex(*b.shape[:-2]):
        for n in range(b.shape[-1]):
            state = x.dtype.type(0)
            for k in range(b.shape[-2]):
                state = a[i][k, n] * state + b[i][k, n]
                x[(*i, k, n)] = state
    return x


def backwards(scan, dx, a):
    """g_k = dx_k + a_{k+1}* g_{k+1}: the scan with time reversed."""
    shifted = np.concatenate([a[..., 1:, :], np.zeros_like(a[..., :1, :])], axis=-2).conj()
    return scan(shifted[..., ::-1, :], dx[..., ::-1, :])[..., ::-1, :]


def one_earlier(x, start):
    """The states before each step, the first of them `start`."""
    first = np.broadcast_to(start[..., None, :], x[..., :1, :].shape)
    return np.concatenate([first, x[..., :-1, :]], axis=-2)


SCANS = {
    "sequential": sequential,
    "hillis_steele": hillis_steele,
    "tree": tree,
    "chunked_16": chunked(16),
    "chunked_64": chunked(64),
    "matrix": matrix,
    "entrywise": entrywise,
}
