"""Honest DSS-softmax kernels: sums in wider precision, a shifted softmax, other quotients."""

import numpy as np

from honest.vandermonde import mode_by_mode, two_tables
from refssm.diagonal import DSS_SOFTMAX_KERNEL


def _wider(*args):
    more = np.float64 if np.finfo(np.result_type(*args)).bits == 32 else np.longdouble
    return [a.astype(np.result_type(a, more)) for a in args]


def row_sums(w, C, dt, *, l):
    """The softmax by its definition, in the next wider precision, shifted by its maximum."""
    kind = np.result_type(w, C, dt)
    w, C, dt = _wider(w, C, dt)
    exponents = (dt[..., None] * w)[..., None] * np.arange(l)
    largest = exponents.real.max(-1, keepdims=True) if l else 0
    E = np.exp(exponents - largest)
    return ((C / w)[..., None] * (E / E.sum(-1, keepdims=True))).sum(-2).astype(kind)


def one_kernel(w, C, dt, *, l):
    """For Re z > 0, e^{z(k−l+1)} with the time steps in their own order."""
    z = dt[..., None] * w
    up, k = z.real > 0, np.arange(l, dtype=z.real.dtype)
    near = np.where(up, -z, z)
    E = np.exp(z[..., None] * (k - np.where(up, l - 1, 0).astype(k.dtype)[..., None]))
    return (((C / w) * (np.expm1(near) / np.expm1(l * near)))[..., None] * E).sum(-2)


def divided_last(w, C, dt, *, l):
    """The product divided by expm1(l x)·w as the last operation."""
    z = dt[..., None] * w
    up = z.real > 0
    x = np.where(up, -z, z)
    v = C * np.expm1(x) / (np.expm1(l * x) * w)
    forward = mode_by_mode(np.where(up, 0, v), x, l=l)
    return forward + mode_by_mode(np.where(up, v, 0), x, l=l)[..., ::-1]


def by_phi(w, C, dt, *, l):
    """C dt φ₁(x)/expm1(l x), with the sign of x/z."""
    z = dt[..., None] * w
    up = z.real > 0
    x = np.where(up, -z, z)
    v = np.where(up, -C, C) * dt[..., None] * (np.expm1(x) / x) / np.expm1(l * x)
    forward = two_tables(np.where(up, 0, v), x, l=l)
    return forward + two_tables(np.where(up, v, 0), x, l=l)[..., ::-1]


def step_by_step(w, C, dt, *, l):
    """A loop over time."""
    z = dt[..., None] * w
    up = z.real > 0
    x = np.where(up, -z, z)
    v = (C / w) / np.expm1(l * x) * np.expm1(x)
    K = np.zeros((*np.broadcast_shapes(v.shape, x.shape)[:-1], l), np.result_type(w, C, dt))
    for k in range(l):
        j = np.where(up, l - 1 - k, k).astype(z.real.dtype)
        K[..., k] = (v * np.exp(x * j)).sum(-1)
    return K


def in_double(w, C, dt, *, l):
    """The reference in double precision, rounded at the end."""
    wide = (a.astype(np.result_type(a, np.float64)) for a in (w, C, dt))
    return DSS_SOFTMAX_KERNEL.reference(*wide, l=l).astype(np.result_type(w, C, dt))


FORMS = (row_sums, one_kernel, divided_last, by_phi, step_by_step, in_double)
SOFTMAX = {form.__name__: form for form in FORMS}
