"""Honest Vandermonde kernels: one exponential per entry, tables of powers, sines and cosines."""

import numpy as np

from honest import Honest
from refssm.vandermonde import VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL


def einsum(v, x, *, l):
    """The sum over modes by einsum."""
    return np.einsum("...n,...nl->...l", v, np.exp(x[..., None] * np.arange(l, dtype=x.real.dtype)))


def mode_by_mode(v, x, *, l):
    """A loop over modes."""
    shape = (*np.broadcast_shapes(v.shape[:-1], x.shape[:-1]), l)
    k, j = np.zeros(shape, np.result_type(v, x)), np.arange(l, dtype=x.real.dtype)
    for n in range(x.shape[-1]):
        k = k + v[..., n, None] * np.exp(x[..., n, None] * j)
    return k


def reversed_modes(v, x, *, l):
    """The sum from the last mode to the first."""
    return mode_by_mode(v[..., ::-1], x[..., ::-1], l=l)


def step_by_step(v, x, *, l):
    """A loop over time."""
    shape = (*np.broadcast_shapes(v.shape[:-1], x.shape[:-1]), l)
    k = np.zeros(shape, np.result_type(v, x))
    for j in range(l):
        k[..., j] = (v * np.exp(x * x.real.dtype.type(j))).sum(-1)
    return k


def polar(v, x, *, l):
    """e^{Re x j} (cos(Im x j) + i sin(Im x j))."""
    j = np.arange(l, dtype=x.real.dtype)
    size, angle = np.exp(x.real[..., None] * j), x.imag[..., None] * j
    E = size * np.cos(angle) + (1j * (size * np.sin(angle)) if np.iscomplexobj(x) else 0)
    return (v[..., None] * E).sum(-2).astype(np.result_type(v, x))


def two_tables(v, x, *, l):
    """j = aq + b: the product of two tables of exponentials."""
    q = max(1, int(np.ceil(np.sqrt(l))))
    b = np.arange(q, dtype=x.real.dtype)
    a = np.arange(-(-l // q), dtype=x.real.dtype) * q
    heads = v[..., None] * np.exp(x[..., None] * a)  # (…, n, a)
    k = np.swapaxes(heads, -1, -2) @ np.exp(x[..., None] * b)
    return k.reshape(*k.shape[:-2], -1)[..., :l]


def in_double(v, x, *, l):
    """Double precision throughout, rounded at the end."""
    wide = (a.astype(np.result_type(a, np.float64)) for a in (v, x))
    return VANDERMONDE_KERNEL.reference(*wide, l=l).astype(np.result_type(v, x))


def sines_and_cosines(v, x, *, l):
    """2 Σ e^{Re x j} (Re v cos(Im x j) − Im v sin(Im x j)): real arithmetic."""
    j = np.arange(l, dtype=x.real.dtype)
    angle = x.imag[..., None] * j
    wave = v.real[..., None] * np.cos(angle) - v.imag[..., None] * np.sin(angle)
    return 2 * (np.exp(x.real[..., None] * j) * wave).sum(-2)


def pairs(v, x, *, l):
    """The sum over both modes of every conjugate pair."""
    v, x = np.broadcast_arrays(v, x)
    both = (np.concatenate([a, a.conj()], axis=-1) for a in (v, x))
    return VANDERMONDE_KERNEL.reference(*both, l=l).real


FORMS = (
    einsum,
    mode_by_mode,
    reversed_modes,
    step_by_step,
    polar,
    two_tables,
    in_double,
)


def _real(form):
    return lambda v, x, *, l: 2 * form(v, x, l=l).real


COMPLEX, REAL = VANDERMONDE_KERNEL, VANDERMONDE_KERNEL_REAL
IMPLEMENTATIONS = [
    *(Honest(COMPLEX.name, form.__name__, form) for form in FORMS),
    *(Honest(REAL.name, form.__name__, _real(form)) for form in FORMS),
    Honest(REAL.name, "sines_and_cosines", sines_and_cosines),
    Honest(REAL.name, "pairs", pairs),
]
