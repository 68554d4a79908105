"""Honest (A, B) of a Fourier basis: loops, pairs, complex modes, cosines and sines separately."""

import numpy as np

from honest import Honest
from refssm.hippo import HIPPO_FOURIER, HIPPO_FOURIER_DIAGONAL, HIPPO_FOURIER_NAIVE


def loops(n, window):
    """S and b, entry by entry."""
    S, b = np.zeros((n, n)), np.zeros(n)
    for k in range(n // 2):
        b[2 * k] = 2**0.5 if k else 1
        S[2 * k, 2 * k + 1], S[2 * k + 1, 2 * k] = -2 * np.pi * k / window, 2 * np.pi * k / window
    return S, b


def off_diagonals(n, window):
    """S from its two off-diagonals."""
    d = np.stack([np.zeros(n // 2), np.arange(n // 2)], axis=-1).reshape(-1)[1:]
    b = np.tile([np.sqrt(2), 0], n // 2)
    b[0] = 1
    return 2 * np.pi / window * (np.diag(d, -1) - np.diag(d, 1)), b


def cosines_then_sines(n, window):
    """All cosines before all sines, interleaved at the end."""
    h = n // 2
    turn, zero = np.diag(2 * np.pi / window * np.arange(h)), np.zeros((h, h))
    order = np.arange(n).reshape(2, h).T.ravel()
    cosines = np.full(h, np.sqrt(2))
    cosines[:1] = 1
    S = np.block([[zero, -turn], [turn, zero]])[np.ix_(order, order)]
    return S, np.append(cosines, np.zeros(h))[order]


def products(n, window):
    """Kronecker products with a rotation by 90°."""
    k = np.arange(n // 2)
    S = np.kron(np.diag(k * (2 * np.pi) / window), [[0, -1], [1, 0]])
    return S, np.kron(np.sqrt(np.minimum(2, k + 1)), [1, 0])


FORMS = (loops, off_diagonals, cosines_then_sines, products)


def _sliding(form):
    def fourier(*, n, window):
        S, b = form(n, window)
        return S - np.outer(b, b) * (2 / window), b * (2 / window)

    return fourier


def _naive(form):
    def fourier_naive(*, n, window):
        S, b = form(n, window)
        return S - b[:, None] * b / window, b / window

    return fourier_naive


def _diagonal(form):
    def fourier_diagonal(*, n):
        S, b = form(n, 1)
        return S - np.eye(n) / 2, b

    return fourier_diagonal


MADE = {
    HIPPO_FOURIER: _sliding,
    HIPPO_FOURIER_NAIVE: _naive,
    HIPPO_FOURIER_DIAGONAL: _diagonal,
}
IMPLEMENTATIONS = [
    Honest(op.name, form.__name__, made(form)) for op, made in MADE.items() for form in FORMS
]
