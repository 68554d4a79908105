"""Honest liquid kernels: step by step, mode by mode, two tables of powers."""

import numpy as np


def _factors(a, B, C, degree):
    """C B^d by repeated products, and a, broadcast, in the type of the result."""
    kind, v = np.result_type(a, B, C), C
    for _ in range(degree):
        v = v * B
    return (np.array(x, kind) for x in np.broadcast_arrays(v, a))


def step_by_step(a, B, C, *, l, degree):
    """The states a^m B^d, one step after the other."""
    x, a = _factors(a, B, C, degree)
    K = np.zeros((*x.shape[:-1], l), x.dtype)
    for m in range(l):
        K[..., m] = x.sum(-1)
        x = a * x
    return K


def mode_by_mode(a, B, C, *, l, degree):
    """Repeated products of each mode, added from the last mode to the first."""
    v, a = _factors(a, B, C, degree)
    K = np.zeros((*v.shape[:-1], l), v.dtype)
    for n in range(v.shape[-1] - 1, -1, -1):
        steps = np.repeat(a[..., n, None], l, -1)
        steps[..., :1] = v[..., n, None]
        K = K + np.cumprod(steps, axis=-1)
    return K


def two_tables(a, B, C, *, l, degree):
    """m = iq + j: the product of two tables of repeated products."""
    v, a = _factors(a, B, C, degree)
    q = max(1, int(np.ceil(np.sqrt(l))))
    steps = np.repeat(a[..., None], q, -1)
    steps[..., :1] = 1
    low = np.cumprod(steps, axis=-1)
    leap, columns = low[..., -1] * a, []
    for _ in range(-(-l // q)):
        columns.append((v[..., None] * low).sum(-2))
        v = v * leap
    if not columns:
        return np.zeros((*v.shape[:-1], 0), v.dtype)
    return np.concatenate(columns, axis=-1)[..., :l]


LIQUID = {form.__name__: form for form in (step_by_step, mode_by_mode, two_tables)}
