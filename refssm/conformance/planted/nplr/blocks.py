"""Planted bugs in the normal part of LegS and in the modes of its blocks."""

import numpy as np

from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import Planting, of_each_result, of_result
from refssm.hippo import HIPPO_LEGS
from refssm.nplr import BLOCK_DIAGONAL, NORMAL_LEGS

MATRIX, MODES = Planting(NORMAL_LEGS, "float64"), Planting(BLOCK_DIAGONAL, "complex128")


def _added(factor):
    """A + factor q qᵀ with q_i = √(2i+1); N is A + p pᵀ with p = q/√2."""

    def matrix(right, *, n):
        A, q = HIPPO_LEGS.reference(n=n)
        return A + factor * np.outer(q, q)

    return matrix


def _counted_from_one(right, *, n):
    p = np.sqrt(np.arange(n) + 1.5)
    return np.triu(np.outer(p, p), 1) - np.tril(np.outer(p, p), -1) - np.eye(n) / 2


MATRIX.plant(
    ("legs_itself", "A, not its normal part", _added(0)),
    ("transposed", "Nᵀ", of_result(np.transpose)),
    ("negated", "−N", of_result(np.negative)),
    ("skew_part", "without −½ I", of_result(lambda N: N + np.eye(len(N)) / 2)),
    ("diagonal_of_legs", "−(i+1) on the diagonal",
     of_result(lambda N: N - np.diag(np.arange(len(N)) + 0.5))),
    ("minus_one", "−1 on the diagonal", of_result(lambda N: N - np.eye(len(N)) / 2)),
    ("symmetric", "one sign off the diagonal", of_result(lambda N: -np.abs(N))),
    ("doubled", "√(2i+1)√(2k+1) without ½", of_result(lambda N: 2 * N + np.eye(len(N)) / 2)),
    ("without_norms", "½ sign(k − i)", of_result(lambda N: np.sign(N) / 2)),
    ("reversed", "states in reverse", of_result(lambda N: N[::-1, ::-1])),
    ("added_norm", "A + q qᵀ", _added(1)),
    ("subtracted", "A − p pᵀ", _added(-0.5)),
    ("counted_from_one", "√(i+½) with i from 1", _counted_from_one),
    ("in_single", "single precision inside", of_result(lambda N: single(N).astype(float))),
    ("narrow", "single precision returned", of_result(single)),
)  # fmt: skip


def _interleaved(right, *, n, blocks):
    """State by state for block after block."""
    w, V = right(n=n, blocks=blocks)
    return w, V.reshape(blocks, n // blocks, n).swapaxes(0, 1).reshape(n, n)


def _sorted_throughout(right, *, n, blocks):
    w, V = right(n=n, blocks=blocks)
    return w[np.argsort(w.imag, kind="stable")] if blocks > 1 else w[::-1], V


def _first_block_only(right, *, n, blocks):
    """The other blocks are left at rest."""
    w, V = right(n=n, blocks=blocks)
    return np.where(np.arange(n) < max(1, n // blocks // 2), w, 0), V


def _eigenbasis(right, *, n, blocks):
    """The modes of LegS itself, in every block."""
    w, V = np.linalg.eig(HIPPO_LEGS.reference(n=n // blocks)[0].astype(complex))
    return np.tile(w, blocks), np.kron(np.eye(blocks), V)


MODES.plant(
    ("transposed", "Vᵀ for V", of_result(lambda w, V: (w, V.T))),
    ("adjoint", "V⁻¹ for V", of_result(lambda w, V: (w, V.conj().T))),
    ("conjugated", "V* for V", of_result(lambda w, V: (w, V.conj()))),
    ("growing", "−w", of_result(lambda w, V: (-w, V))),
    ("skew_part", "w + ½", of_result(lambda w, V: (w + 0.5, V))),
    ("full_decay", "w − ½", of_result(lambda w, V: (w - 0.5, V))),
    ("single_inside", "single precision inside",
     of_each_result(lambda x: single(x).astype(complex))),
    ("narrow", "single precision returned", of_each_result(single)),
    ("whole", "one block of all n", lambda right, *, n, blocks: right(n=n, blocks=1)),
    ("interleaved", "blocks interleaved in the rows of V", _interleaved),
    ("sorted_throughout", "w sorted over all blocks, V not", _sorted_throughout),
    ("one_of_each_pair", "half of the modes",  # of every block, as S5 keeps them
     of_result(lambda w, V: (w[w.imag > 0], V[:, w.imag > 0]))),
    ("first_block_only", "the other blocks at rest", _first_block_only),
    ("rescaled", "vectors not of unit length",  # but with a largest entry of 1
     of_result(lambda w, V: (w, V / np.abs(V).max(axis=0)))),
    ("eigenbasis", "modes of LegS itself", _eigenbasis),
)  # fmt: skip
