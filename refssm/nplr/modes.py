"""Modes of a real normal matrix ρ I + S with skew S: conjugate pairs, exactly.

S has the eigenvalues ±iσ, and 0 if n is odd. iS is Hermitian, so `eigh` finds them; only σ > 0 is
used, the other half is the conjugate. `eigh` makes the eigenvectors v of iσ and v* of −iσ
orthogonal up to u ‖S‖/σ, which for LegS is 22 n u at n = 64 and 500 n u at 512. Therefore one step
of Newton's iteration for the polar factor orthogonalizes the matrix of √2 Re v, √2 Im v and the
real mode.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Modes(NamedTuple):
    """The modes with Im w > 0, ascending, and the real mode if there is one."""

    frequencies: np.ndarray  # Im w (n/2)
    upper: np.ndarray  # their eigenvectors (n, n/2)
    middle: np.ndarray  # the real eigenvector (n, n mod 2)

    def poles(self, real_part) -> NDArray[np.complex128]:
        """w, ascending by imaginary part; the real part is exactly `real_part`."""
        none = np.zeros(self.middle.shape[-1])
        w = np.empty(len(self.upper), complex)
        w.real = real_part
        w.imag = np.concatenate([-self.frequencies[::-1], none, self.frequencies])
        return w

    def basis(self) -> np.ndarray:
        """V, with columns in the order of `poles`."""
        return paired(self.upper, self.middle)

    def rotated(self, x) -> np.ndarray:
        """Vᴴx of a real vector x; pairs are exactly conjugate."""
        return paired(x @ self.upper.conj(), x @ self.middle)


def paired(upper, middle) -> np.ndarray:
    """Conjugates of the last axis of `upper` in reverse, `middle`, `upper`."""
    return np.concatenate([upper[..., ::-1].conj(), middle, upper], axis=-1)


def skew_modes(S, b) -> Modes:
    """The modes of a real skew S; vᴴb is real and positive for every eigenvector v.

    S has at most one eigenvalue 0, and no eigenvector is orthogonal to b.
    """
    half = len(S) // 2
    frequencies, vectors = np.linalg.eigh(-1j * S)
    first = len(S) - half
    X = _orthogonalized(_real_basis(vectors[:, half:first], vectors[:, first:]))
    middle = X[:, :1] if first > half else X[:, :0]
    upper = (X[:, first - half : first] + 1j * X[:, first:]) / np.sqrt(2)
    return Modes(
        frequencies[first:], upper * _phases(b @ upper.conj()), middle * _phases(b @ middle)
    )


def _real_basis(middle, upper):
    """The columns of `middle` without their phase, then √2 Re and √2 Im of those of `upper`."""
    turned = middle * _phases(np.sqrt((middle**2).sum(0))).conj()
    return np.concatenate([turned.real, np.sqrt(2) * upper.real, np.sqrt(2) * upper.imag], axis=1)


def _orthogonalized(X):
    """X (3I − XᵀX)/2: an orthogonality error ε becomes ¾ε²."""
    return 1.5 * X - 0.5 * (X @ (X.T @ X))


def _phases(c):
    """c/|c|."""
    return c / np.abs(c)
