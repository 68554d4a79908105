"""Honest Cauchy kernels: sums in several orders, other forms of the quotient, compiled code.

Those of conjugate pairs are such sums of both halves, or one fraction for a pair. Also resolvents
at roots of unity, by the same sums and by a transform.
"""

import numpy as np

from honest import Honest
from refssm._numerics.broadcasting import unbroadcast
from refssm._numerics.pairs import paired
from refssm._numerics.roots import roots_of_unity
from refssm.cauchy import CAUCHY_KERNEL, CAUCHY_KERNEL_PAIRS, RESOLVENT_AT_ROOTS


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
    """The sum from the last pole to the first."""
    return pole_by_pole(v[..., ::-1], w[..., ::-1], z)


def smallest_first(v, w, z):
    """Terms added in the order of increasing modulus."""
    terms = _terms(v, w, z)
    order = np.argsort(np.abs(terms), axis=-1)
    return np.add.accumulate(np.take_along_axis(terms, order, axis=-1), axis=-1)[..., -1]


def largest_first(v, w, z):
    """Terms added in the order of decreasing modulus."""
    terms = _terms(v, w, z)
    order = np.argsort(-np.abs(terms), axis=-1)
    return np.add.accumulate(np.take_along_axis(terms, order, axis=-1), axis=-1)[..., -1]


def conjugate_quotient(v, w, z):
    """v d*/|d|² with d = z − w; v d* is computed first."""
    d = z[..., :, None] - w[..., None, :]
    return (v[..., None, :] * d.conj() / (d.real**2 + d.imag**2)).sum(-1)


def real_and_imaginary(v, w, z):
    """Real arithmetic only; the reciprocal of d is computed first."""
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


def _of_both(form):
    """A sum over all poles, for both halves."""
    return lambda v, w, z: form(paired(v), paired(w), z)


def partner_by_partner(v, w, z):
    """The stored half plus its partners, each summed by itself."""
    return _terms(v, w, z).sum(-1) + _terms(v.conj(), w.conj(), z).sum(-1)


def pair_by_pair(v, w, z):
    """The two terms of a pair first."""
    return (_terms(v, w, z) + _terms(v.conj(), w.conj(), z)).sum(-1)


def fraction(v, w, z):
    """One fraction for a pair: 2 (Re v (z − Re w) − Im v Im w) / ((z − w)(z − w*))."""
    v, w, z = v[..., None, :], w[..., None, :], z[..., :, None]
    numerator = 2 * (v.real * (z - w.real) - v.imag * w.imag)
    return (numerator / ((z - w) * (z - w.conj()))).sum(-1)


def _powers(base, l):
    """base^0 … base^l."""
    return base[..., None] ** np.arange(l + 1, dtype=base.real.dtype)


def _products(base, l):
    """The same, one after the other.

    The phase of `base ** k` errs by k |log base| roundings, each another: where Σ k base^k cancels,
    gradients lose many times as much (70 at 300 nodes and |a| = 0.998).
    """
    ones = np.ones_like(base)[..., None]
    return np.cumprod(np.concatenate([ones, np.repeat(base[..., None], l, -1)], -1), -1)


def _wrapped(a, l, powers):
    """a^k/(1 − a^l), k < l, or −a^(k−l)/(1 − a^(−l)) where |a| > 1: both stay bounded."""
    inside = np.abs(a) <= 1
    p = powers(np.where(inside, a, 1 / np.where(inside, 1, a)), l)
    return np.where(inside[..., None], p[..., :l], -p[..., l:0:-1]) / (1 - p[..., l:])


def _complex(*arguments):
    return np.result_type(*arguments, np.complex64)


def transform(v, a, *, l):
    """A Vandermonde product and one transform."""
    wrapped = (v[..., None] * _wrapped(a, l, _powers)).sum(-2)
    return np.fft.fft(wrapped).astype(_complex(v, a))


def transform_vjp(dk, v, a, *, l):
    """The transform back, then W_k = a^k/(1 − a^l) and its derivative k W_{k−1} + l W_k W_{l−1}."""
    g = (np.fft.ifft(dk) * l)[..., None, :]  # Σ_j e^(+2πijk/l) dk_j
    W, k = _wrapped(a, l, _products), np.arange(l, dtype=a.real.dtype)
    earlier = np.concatenate([0 * W[..., :1], W[..., :-1]], axis=-1)
    slopes = k * earlier + l * W * W[..., -1:]
    dv = (g * W.conj()).sum(-1)
    da = (g * (v[..., None] * slopes).conj()).sum(-1)
    return unbroadcast(dv, v), unbroadcast(da, a)


def resolvent_mode_by_mode(v, a, *, l):
    """A loop over modes; the nodes come from sines and cosines."""
    omega = roots_of_unity(l, a.real.dtype.type)
    shape = (*np.broadcast_shapes(v.shape[:-1], a.shape[:-1]), l)
    k = np.zeros(shape, _complex(v, a))
    for n in range(a.shape[-1]):
        k = k + v[..., n, None] / (1 - a[..., n, None] * omega)
    return k


def as_cauchy(v, a, *, l):
    """Σ v z/(z − a) at z = e^(+2πij/l)."""
    z = roots_of_unity(l, a.real.dtype.type).conj()
    return z * CAUCHY_KERNEL.reference(v, a, z)


def resolvent_in_double(v, a, *, l):
    """The reference in double precision, rounded at the end."""
    wide = (x.astype(np.result_type(x, np.float64)) for x in (v, a))
    return RESOLVENT_AT_ROOTS.reference(*wide, l=l).astype(_complex(v, a))


def rounded_exponentials(v, a, *, l):
    """e^(−2πij/l) by the library's exponential in double precision, rounded to the type."""
    omega = np.exp(-2j * np.pi * np.arange(l) / max(l, 1)).astype(_complex(v, a))[:, None]
    return (v[..., None, :] / (1 - a[..., None, :] * omega)).sum(-1)


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

OF_PAIRS = (partner_by_partner, pair_by_pair, fraction)
PAIRS, ROOTS = CAUCHY_KERNEL_PAIRS, RESOLVENT_AT_ROOTS
AT_ROOTS = (resolvent_mode_by_mode, as_cauchy, resolvent_in_double, rounded_exponentials)

IMPLEMENTATIONS = [
    *(Honest("cauchy_kernel", form.__name__, form) for form in FORMS),
    *(Honest(PAIRS.name, form.__name__, _of_both(form)) for form in FORMS),
    *(Honest(PAIRS.name, form.__name__, form) for form in OF_PAIRS),
    Honest(ROOTS.name, "transform", transform, transform_vjp),
    *(Honest(ROOTS.name, form.__name__, form) for form in AT_ROOTS),
]
