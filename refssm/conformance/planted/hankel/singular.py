"""Planted bugs in Hankel singular values of diagonal systems and their gradients."""

import numpy as np

from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import HANKEL_SINGULAR_VALUES_DIAGONAL

PLANTING = Planting(HANKEL_SINGULAR_VALUES_DIAGONAL, "complex64")
right, right_vjp = PLANTING.right, PLANTING.right_vjp
forward, gradient = PLANTING.forward, PLANTING.gradient
USUAL = Planting(HANKEL_SINGULAR_VALUES_DIAGONAL, "float32")  # the type of the result
USUAL.usual()


def _gramians(w, B, C):
    """P and Q."""
    P = -B[..., :, None] * B[..., None, :].conj() / (w[..., :, None] + w[..., None, :].conj())
    Q = -C[..., :, None].conj() * C[..., None, :] / (w[..., :, None].conj() + w[..., None, :])
    return P, Q


def _kept(y, *args):
    """In the real type of the arguments."""
    return np.abs(y).astype(np.finfo(np.result_type(*args)).dtype)


def _from_values(change):
    """A change of the right values."""

    def wrong(w, B, C):
        return _kept(change(right(w, B, C)), w, B, C)

    return wrong


def _from_squares(squares):
    """√ of the eigenvalues of a matrix made of w, B, C; descending."""

    def wrong(w, B, C):
        M = np.nan_to_num(squares(*np.broadcast_arrays(w, B, C)))
        values = np.sqrt(np.abs(np.linalg.eigvals(M)))
        return _kept(-np.sort(-values, axis=-1), w, B, C)

    return wrong


forward("squared", "the eigenvalues of P Q, no root")(_from_values(lambda s: s**2))
forward("root_twice", "√σ")(_from_values(np.sqrt))
forward("ascending", "the smallest first")(_from_values(lambda s: s[..., ::-1]))
forward("normalised", "σ/σ_1")(_from_values(lambda s: s / s[..., :1]))
forward("doubled", "the factor 2 of pairs")(_from_values(lambda s: 2 * s))
forward("halved", "σ/2: a gramian without its factor")(_from_values(lambda s: s / 2))
forward("clipped", "nothing below 1e-6 of the largest")(
    _from_values(lambda s: np.maximum(s, 1e-6 * s[..., :1]))
)
forward("truncated", "0 below 1e-6 of the largest")(
    _from_values(lambda s: np.where(s < 1e-6 * s[..., :1], 0, s))
)
forward("last_forgotten", "0 for the last value")(
    _from_values(lambda s: np.where(np.arange(s.shape[-1]) == s.shape[-1] - 1, 0, s))
)
forward("first_not_sorted", "the two largest exchanged")(
    _from_values(lambda s: np.concatenate([s[..., :2][..., ::-1], s[..., 2:]], axis=-1))
)
forward("controllability_only", "√λ(P²): C taken for B")(lambda w, B, C: right(w, B, B + 0 * C))
forward("observability_only", "B taken for C")(lambda w, B, C: right(w, C + 0 * B, C))
forward("input_conjugated", "B* C")(lambda w, B, C: right(w, B.conj(), C))
forward("poles_conjugated", "w* for w")(lambda w, B, C: right(w.conj(), B, C))
forward("real_poles", "the decay alone")(lambda w, B, C: right(w.real + 0 * w, B, C))
forward("moduli", "|B C|: the phases left out")(
    lambda w, B, C: right(w, np.abs(B) + 0 * B, np.abs(C) + 0 * C)
)
forward("next_residue", "C in another order than w")(lambda w, B, C: right(w, B, np.roll(C, 1, -1)))
forward("residues_forgotten", "B = C = 1")(lambda w, B, C: right(w, 0 * B + 1, 0 * C + 1))
forward("slower", "w/2: 1/(w + w*) taken for 1/(2w + 2w*)")(lambda w, B, C: right(2 * w, B, C))
forward("lapack", "LAPACK's values of P Q, in full precision", dtype="complex128")(
    _from_squares(lambda w, B, C: np.matmul(*_gramians(w, B, C)))
)


@forward("conjugate_missing", "w_i + w_j in the gramians")
@_from_squares
def _conjugate_missing(w, B, C):
    K = -1 / (w[..., :, None] + w[..., None, :])
    P = B[..., :, None] * B[..., None, :] * K
    return P @ (C[..., :, None] * C[..., None, :] * K)


@forward("discrete", "the gramians of x_k = w x_{k−1} + B u")
@_from_squares
def _discrete(w, B, C):
    z = 1 - w[..., :, None] * w[..., None, :].conj()
    P = B[..., :, None] * B[..., None, :].conj() / z
    return P @ (C[..., :, None].conj() * C[..., None, :] / z.conj())


@forward("same_side", "Q without its conjugate: P Qᵀ")
@_from_squares
def _same_side(w, B, C):
    P, Q = _gramians(w, B, C)
    return P @ Q.swapaxes(-1, -2)


@forward("gramian_only", "the eigenvalues of P")
def _gramian_only(w, B, C):
    P, _ = _gramians(*np.broadcast_arrays(w, B, C))
    return _kept(-np.sort(-np.abs(np.linalg.eigvals(np.nan_to_num(P))), axis=-1), w, B, C)


@gradient("as_jax", "the conjugate convention")
def _as_jax(dsigma, w, B, C):
    return tuple(g.conj() for g in right_vjp(dsigma, w, B, C))


@gradient("squares", "of σ², not of σ")
def _squares(dsigma, w, B, C):
    return right_vjp(2 * dsigma * right(w, B, C), w, B, C)


PLANTING.changed_gradient("one_side", "dw of one of the two factors", w=lambda g, _: g / 2)
PLANTING.changed_gradient("poles_fixed", "no gradient of w", w=lambda g, _: 0 * g)
PLANTING.changed_gradient("sign", "−dw", w=lambda g, _: -g)
PLANTING.changed_gradient("input_forgotten", "no gradient of B", B=lambda g, _: 0 * g)
PLANTING.changed_gradient("real_part", "the real part of dB", B=lambda g, _: g.real + 0 * g)
PLANTING.changed_gradient("conjugated", "dC*", C=lambda g, _: g.conj())


@gradient("exchanged", "dB and dC exchanged")
def _exchanged(dsigma, w, B, C):
    dw, dB, dC = right_vjp(dsigma, w, B, C)
    return dw, dC.reshape(dB.shape), dB.reshape(dC.shape)


@gradient("reversed", "cotangents in ascending order")
def _reversed(dsigma, w, B, C):
    return right_vjp(dsigma[..., ::-1].copy(), w, B, C)


@gradient("largest_only", "of σ_1 alone")
def _largest_only(dsigma, w, B, C):
    return right_vjp(np.where(np.arange(dsigma.shape[-1]) == 0, dsigma, 0), w, B, C)


SINGULAR = [*USUAL.bugs, *PLANTING.bugs]
