"""Planted bugs in the normal part of LegS and in the modes of its blocks."""

import numpy as np

from refssm.conformance.planted import Deviation
from refssm.hippo import HIPPO_LEGS
from refssm.nplr import BLOCK_DIAGONAL, NORMAL_LEGS

matrix, modes = NORMAL_LEGS.reference, BLOCK_DIAGONAL.reference


def _roots(n):
    return np.sqrt(np.arange(n) + 0.5)


def added_norm(n):
    """A + q qᵀ with q_i = √(2i+1)."""
    A, q = HIPPO_LEGS.reference(n=n)
    return A + np.outer(q, q)


def subtracted(n):
    """A − p pᵀ."""
    return HIPPO_LEGS.reference(n=n)[0] - np.outer(_roots(n), _roots(n))


def rolled(n):
    """√(i+½) counted from 1."""
    p = np.sqrt(np.arange(n) + 1.5)
    return np.triu(np.outer(p, p), 1) - np.tril(np.outer(p, p), -1) - np.eye(n) / 2


def in_single(n):
    """Roots in single precision."""
    return matrix(n=n).astype(np.float32).astype(float)


MATRICES = [
    ("legs_itself", "A, not its normal part", lambda n: HIPPO_LEGS.reference(n=n)[0]),
    ("transposed", "Nᵀ", lambda n: matrix(n=n).T),
    ("negated", "−N", lambda n: -matrix(n=n)),
    ("skew_part", "without −½ I", lambda n: matrix(n=n) + np.eye(n) / 2),
    (
        "diagonal_of_legs",
        "−(i+1) on the diagonal",
        lambda n: matrix(n=n) - np.diag(np.arange(n) + 0.5),
    ),
    ("minus_one", "−1 on the diagonal", lambda n: matrix(n=n) - np.eye(n) / 2),
    ("symmetric", "one sign off the diagonal", lambda n: np.eye(n) * 0 - np.abs(matrix(n=n))),
    ("doubled", "√(2i+1)√(2k+1) without ½", lambda n: 2 * matrix(n=n) + np.eye(n) / 2),
    ("without_norms", "½ sign(k − i)", lambda n: np.sign(matrix(n=n)) / 2),
    ("reversed", "states in reverse", lambda n: matrix(n=n)[::-1, ::-1]),
    ("added_norm", "A + q qᵀ", added_norm),
    ("subtracted", "A − p pᵀ", subtracted),
    ("counted_from_one", "√(i+½) with i from 1", rolled),
    ("in_single", "single precision inside", in_single),
    ("narrow", "single precision returned", lambda n: matrix(n=n).astype(np.float32)),
]


def whole(n, blocks):
    """One matrix of all of n."""
    return modes(n=n, blocks=1)


def interleaved(n, blocks):
    """State by state for block after block."""
    w, V = modes(n=n, blocks=blocks)
    return w, V.reshape(blocks, n // blocks, n).swapaxes(0, 1).reshape(n, n)


def sorted_throughout(n, blocks):
    """w sorted over all blocks, V not."""
    w, V = modes(n=n, blocks=blocks)
    return w[np.argsort(w.imag, kind="stable")] if blocks > 1 else w[::-1], V


def one_of_each_pair(n, blocks):
    """Half of the modes of every block, as S5 keeps them."""
    w, V = modes(n=n, blocks=blocks)
    upper = w.imag > 0
    return w[upper], V[:, upper]


def first_block_only(n, blocks):
    """The other blocks are left at rest."""
    w, V = modes(n=n, blocks=blocks)
    return np.where(np.arange(n) < max(1, n // blocks // 2), w, 0), V


def rescaled(n, blocks):
    """Vectors with a largest entry of 1."""
    w, V = modes(n=n, blocks=blocks)
    return w, V / np.abs(V).max(axis=0)


def eigenbasis(n, blocks):
    """The modes of LegS itself, in every block."""
    w, V = np.linalg.eig(HIPPO_LEGS.reference(n=n // blocks)[0].astype(complex))
    return np.tile(w, blocks), np.kron(np.eye(blocks), V)


def _change(change):
    return lambda n, blocks: change(*modes(n=n, blocks=blocks))


MODES = [
    ("transposed", "Vᵀ for V", _change(lambda w, V: (w, V.T))),
    ("adjoint", "V⁻¹ for V", _change(lambda w, V: (w, V.conj().T))),
    ("conjugated", "V* for V", _change(lambda w, V: (w, V.conj()))),
    ("growing", "−w", _change(lambda w, V: (-w, V))),
    ("skew_part", "w + ½", _change(lambda w, V: (w + 0.5, V))),
    ("full_decay", "w − ½", _change(lambda w, V: (w - 0.5, V))),
    ("single_inside", "single precision inside", _change(
        lambda w, V: (w.astype("F").astype("D"), V.astype("F").astype("D"))
    )),
    ("narrow", "single precision returned", _change(lambda w, V: (w.astype("F"), V.astype("F")))),
    ("whole", "one block of all n", whole),
    ("interleaved", "blocks interleaved in the rows of V", interleaved),
    ("sorted_throughout", "w sorted over all blocks, V not", sorted_throughout),
    ("one_of_each_pair", "half of the modes", one_of_each_pair),
    ("first_block_only", "the other blocks at rest", first_block_only),
    ("rescaled", "vectors not of unit length", rescaled),
    ("eigenbasis", "modes of LegS itself", eigenbasis),
]  # fmt: skip


def _matrix(function):
    return lambda *, n: function(n)


def _modes(function):
    return lambda *, n, blocks: function(n, blocks)


DEVIATIONS = [
    *(Deviation("normal_legs", n, "value[float64]", w, _matrix(f)) for n, w, f in MATRICES),
    *(Deviation("block_diagonal", n, "value[complex128]", w, _modes(f)) for n, w, f in MODES),
]
