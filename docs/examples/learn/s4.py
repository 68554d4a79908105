"""Answers to the exercises of docs/learn/s4.md."""

import numpy as np


def cauchy_kernel(v, w, z):
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)


def cauchy_kernel_pairs(v, w, z):
    return cauchy_kernel(v, w, z) + cauchy_kernel(v.conj(), w.conj(), z)


def resolvent_at_roots(v, a, *, l):
    omega = np.exp(-2j * np.pi * np.arange(l) / l)
    kind = np.result_type(v, a, np.complex64)
    terms = v[..., None, :] / (1 - a[..., None, :] * omega.astype(kind)[:, None])
    return terms.sum(-1)
