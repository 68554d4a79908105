"""Honest Cauchy kernels: the sum in every order, other forms of the quotient, compiled."""

import numpy as np

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.honest import Honest
from refssm.jit import cauchy as jit


def _terms(v, w, z):
    """v_n / (z_l − w_n)."""
    return v[..., None, :] / (z[..., :, None] - w[..., None, :])


def einsum(v, w, z):
    """The sum over poles by einsum."""
    return np.einsum("...ln->...l", _terms(v, w, z))


def pole_by_pole(v, w, z):
    """A loop that adds one pole at a time."""
    shape = np.broadcast_shapes(v[..., :1].shape, w[..., :1].shape, z.shape)
    k = np.zeros(shape, np.result_type(v, w, z))
    for n in range(v.shape[-1]):
        k = k + v[..., n, None] / (z - w[..., n, None])
    return k


def reversed_poles(v, w, z):
    """The last pole first."""
    return pole_by_pole(v[..., ::-1], w[..., ::-1], z)


def smallest_first(v, w, z):
    """Terms added in the order of their modulus."""
    terms = _terms(v, w, z)
    order = np.argsort(np.abs(terms), axis=-1)
    return np.add.accumulate(np.take_along_axis(terms, order, axis=-1), axis=-1)[..., -1]


def largest_first(v, w, z):
    """Terms added in the order of falling modulus."""
    terms = _terms(v, w, z)
    order = np.argsort(-np.abs(terms), axis=-1)
    return np.add.accumulate(np.take_along_axis(terms, order, axis=-1), axis=-1)[..., -1]


def conjugate_quotient(v, w, z):
    """v d*/|d|², d = z − w, the product first."""
    d = z[..., :, None] - w[..., None, :]
    return (v[..., None, :] * d.conj() / (d.real**2 + d.imag**2)).sum(-1)


def real_and_imaginary(v, w, z):
    """Real arithmetic throughout, the reciprocal of d first."""
    re = z.real[..., :, None] - w.real[..., None, :]
    im = z.imag[..., :, None] - w.imag[..., None, :]
    v_re, v_im, size = v.real[..., None, :], v.imag[..., None, :], re * re + im * im
    re, im = re / size, -im / size
    k = np.empty(np.broadcast_shapes(re[..., 0].shape, v_re[..., 0].shape), np.result_type(v, w, z))
    k.real = (v_re * re - v_im * im).sum(-1)
    k.imag = (v_im * re + v_re * im).sum(-1)
    return k


def entrywise(v, w, z):
    """A Python loop over every number."""
    shape = np.broadcast_shapes(v.shape[:-1], w.shape[:-1], z.shape[:-1])
    arrays = [np.broadcast_to(x, (*shape, x.shape[-1])) for x in (v, w, z)]
    k = np.zeros((*shape, z.shape[-1]), np.result_type(v, w, z))
    for i in np.ndindex(*shape):
        v_i, w_i, z_i = (x[i] for x in arrays)
        for l in range(z_i.size):
            for n in range(v_i.size):
                k[(*i, l)] += v_i[n] / (z_i[l] - w_i[n])
    return k


FORMS = (
    einsum,
    pole_by_pole,
    reversed_poles,
    smallest_first,
    largest_first,
    conjugate_quotient,
    real_and_imaginary,
    entrywise,
)

IMPLEMENTATIONS = [
    Honest("cauchy_kernel", "reference", CAUCHY_KERNEL.reference, CAUCHY_KERNEL.bare_vjp),
    Honest("cauchy_kernel", "numba", jit.cauchy_kernel, jit.cauchy_kernel_vjp),
    *(Honest("cauchy_kernel", form.__name__, form) for form in FORMS),
]
