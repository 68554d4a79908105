"""Planted bugs in normal plus low rank forms, for all measures and for single ones."""

from functools import partial

import numpy as np

from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.hippo.constructors import of_keywords
from refssm.conformance.planted.planting import (
    Planting,
    every_third_call,
    instead,
    of_each_result,
    of_result,
)
from refssm.hippo import HIPPO_FOURIER, HIPPO_FOURIER_NAIVE, HIPPO_LAGT, HIPPO_LEGS, HIPPO_LEGT
from refssm.nplr import (
    BLOCK_DIAGONAL,
    NORMAL_LEGS,
    NPLR_FOURIER,
    NPLR_FOURIER_NAIVE,
    NPLR_LAGT,
    NPLR_LEGS,
    NPLR_LEGT,
)


def legs(*, n):
    """p_i = √(i+½)."""
    return _system(HIPPO_LEGS, lambda b: b[:, None] / np.sqrt(2), n=n)


def legt(*, n, window=1.0):
    """The odd and the even half of √(2i+1)/√w."""
    odd = np.arange(n) % 2 == 1
    halves = np.stack([odd, ~odd], axis=1)
    return _system(HIPPO_LEGT, lambda b: b[:, None] * halves * np.sqrt(window), n=n, window=window)


def lagt(*, n, beta=1.0):
    """√½·1."""
    return _system(HIPPO_LAGT, lambda b: np.full((n, 1), np.sqrt(0.5)), n=n, beta=beta)


def fourier(*, n, window=1.0):
    """√(2/w) c where b = 2c/w."""
    return _system(HIPPO_FOURIER, lambda b: b[:, None] * np.sqrt(window / 2), n=n, window=window)


def fourier_naive(*, n, window=1.0):
    """√(1/w) c where b = c/w."""
    return _system(HIPPO_FOURIER_NAIVE, lambda b: b[:, None] * np.sqrt(window), n=n, window=window)


def _system(hippo, factor, **sizes):
    A, b = hippo.reference(**sizes)
    return A, factor(b), b


# the systems to decompose: A, p with A + p pᵀ normal, and b
SYSTEMS = {
    NPLR_LEGS: legs,
    NPLR_LEGT: legt,
    NPLR_LAGT: lagt,
    NPLR_FOURIER: fourier,
    NPLR_FOURIER_NAIVE: fourier_naive,
}

_, LEGT, LAGT, FOURIER, NAIVE = MEASURES = [Planting(op, "complex128") for op in SYSTEMS]
MATRIX, MODES = Planting(NORMAL_LEGS, "float64"), Planting(BLOCK_DIAGONAL, "complex128")
ROOT = np.sqrt(2)


def _with(**changes):
    """The right w, P, B and V, or w and V, with some of them changed."""

    def program(right, **sizes):
        y = right(**sizes)
        names = "wPBV" if len(y) == 4 else "wV"
        return tuple(changes.get(name, np.positive)(x) for name, x in zip(names, y, strict=True))

    return program


def _one_of_each_pair(w, P, B, V):
    """Only the second half of the modes, as S4 stores them."""
    half = len(w) // 2
    return w[half:], P[half:], B[half:], V[:, half:]


def _rotated_without_conjugate(w, P, B, V):
    """Vᵀp and Vᵀb, with other phases in V."""
    turn = np.exp(1j * np.arange(len(w)))
    return w, turn[:, None] * P, turn * B, V * turn


def _without_mode_zero(w, P, B, V):
    """The last mode but one is replaced by the last one."""
    i = np.arange(len(w))
    i[-2:] = len(w) - 1
    return w[i], P[i], B[i], V[:, i]


ANY = (
    ("transposed", "Vᵀ for V", _with(V=np.transpose)),
    ("adjoint", "Vᴴ for V", _with(V=lambda V: V.conj().T)),
    ("conjugated", "V* for V", _with(V=np.conj)),
    ("sorted_alone", "w descending, the vectors not", _with(w=lambda w: w[::-1])),
    ("rescaled", "vectors with a largest entry of 1", _with(V=lambda V: V / np.abs(V).max(axis=0))),
    ("real_part_less_a_half", "Re w − ½", _with(w=lambda w: w - 0.5)),
    ("growing", "−w for w", _with(w=np.negative)),
    ("in_turns", "frequencies in turns, not radians",
     _with(w=lambda w: w.real + 1j * w.imag / (2 * np.pi))),
    ("full_norm_in_p", "√2 P: p pᵀ for ½ p pᵀ", _with(P=lambda P: ROOT * P)),
    ("half_norm_in_p", "P/√2", _with(P=lambda P: P / ROOT)),
    ("no_low_rank", "P left out", _with(P=np.zeros_like)),
    ("normed_as_p", "B/√2, of the measure that P has", _with(B=lambda B: B / ROOT)),
    ("pairs_doubled", "2 B", _with(B=lambda B: 2 * B)),
    ("half_doubled", "2 B where Im w > 0",  # they stand for their pairs, the others are left out
     _with(B=lambda B: np.where(np.arange(len(B)) < len(B) // 2, 0, 2 * B))),
    ("one_of_each_pair", "half of the modes", of_result(_one_of_each_pair)),
    ("real_vectors", "Re V", _with(V=lambda V: V.real + 0j)),
    ("half_precision_of_double", "single precision inside",
     of_each_result(lambda x: single(x).astype(complex))),
    ("vectors_permuted", "columns of V one on", _with(V=lambda V: np.roll(V, 1, 1))),
    ("rows_permuted", "states in reverse", _with(V=lambda V: V[::-1])),
    ("rotated_without_conjugate", "Vᵀp for Vᴴp", of_result(_rotated_without_conjugate)),
    ("without_mode_zero", "one mode twice, another never", of_result(_without_mode_zero)),
    ("narrow", "single precision returned", of_each_result(single)),
)  # fmt: skip


def _from(op, made):
    """made(w, P, B, V, A, p, b): other results from the right ones and the system."""
    return lambda right, **sizes: made(*right(**sizes), *SYSTEMS[op](**sizes))


def _eigenbasis(w, P, B, V, A, p, b):
    """Eigenvectors of A itself: V is not unitary, and P is zero."""
    w, V = np.linalg.eig(A.astype(complex))
    return w, np.zeros(p.shape, complex), V.conj().T @ b, V


def _symmetric_part_lost(w, P, B, V, A, p, b):
    """The Hermitian part of −iA: p pᵀ is lost, and P is added in spite of that."""
    frequencies, V = np.linalg.eigh(-1j * np.tril(A))  # reads one triangle
    return 1j * frequencies, V.conj().T @ p, V.conj().T @ b, V


for _p in MEASURES:
    # Lagt's V is symmetric but for the order: transposed, it is right
    _p.plant(*(row for row in ANY if not (_p is LAGT and row[0] == "transposed")))
    _p.plant(
        ("not_rotated_p", "P in the original basis",
         _from(_p.op, lambda w, P, B, V, A, p, b: (w, p.astype(complex), B, V))),
        ("not_rotated_b", "B in the original basis",
         _from(_p.op, lambda w, P, B, V, A, p, b: (w, P, b.astype(complex), V))),
        ("eigenbasis", "eigenvectors of A itself", _from(_p.op, _eigenbasis)),
        ("symmetric_part_lost", "the eigenvectors of one triangle of A",
         _from(_p.op, _symmetric_part_lost)),
    )  # fmt: skip
    _p.plant(  # phases that depend on the call are right; frequencies that do are not
        ("unrepeatable", "depends on the call", _with(w=partial(every_third_call(), np.positive))),
        by="repeat",
    )
for _p in (LEGT, FOURIER, NAIVE):
    _p.plant(("window_ignored", "window ignored", of_keywords(window=lambda w: 1.0)))


def _periodic(right, *, n, beta=1.0):
    """e^{iθn} = 1 instead of −1: the waves of a circle."""
    j, theta = np.arange(n), 2 * np.pi * np.arange(n) / n
    w = -beta / 2 + 0.5j / np.tan(np.where(theta, theta, np.pi) / 2)
    _, P, B, _ = right(n=n, beta=beta)
    return w, P, B, np.exp(1j * np.outer(j, theta)) / np.sqrt(n)


def _as_the_constant(x):
    """B or P with the constant's value for every state."""
    return np.full_like(x, x[len(x) // 2 - 1])


def _constant_as_a_wave(x):
    """B or P with the factor √2 for the constant too."""
    return (x.T * np.where(np.arange(len(x)) == len(x) // 2 - 1, ROOT, 1)).T


LEGT.plant(
    ("halved", "A and B halved", of_keywords(window=lambda w: 2 * w)),  # S4's scale for window 1
    ("rank_one", "rank 1",  # √(2i+1)/√(2w) in one column: the even and the odd half mixed
     _with(P=lambda P: P.sum(-1, keepdims=True) * np.array([1, 0]))),
    ("halves_subtracted", "P* for P", _with(P=np.conj)),  # both halves of the same sign in A
    ("window_once", "P/√w", lambda right, *, n, window:  # √(2i+1)/w in both P and B
     _with(P=lambda P: P / np.sqrt(window))(right, n=n, window=window)),
)  # fmt: skip
LAGT.plant(
    ("unnormed_input", "b = 1 for √β", lambda right, *, n, beta:
     _with(B=lambda B: B / np.sqrt(beta))(right, n=n, beta=beta)),
    ("beta_ignored", "β ignored", of_keywords(beta=lambda beta: 1.0)),
    # −(1 + β)/2 for −β/2
    ("decaying_as_alone", "Re w of A's diagonal", _with(w=lambda w: w - 0.5)),
    ("periodic", "waves of period n", _periodic),
)  # fmt: skip
for _p, _other in ((FOURIER, NAIVE), (NAIVE, FOURIER)):
    _p.plant(
        ("other_factor", "the other factor of b bᵀ", instead(_other.op.reference)),
        ("dead_state_driven", "the state of sin 0 driven",
         _with(P=_as_the_constant, B=_as_the_constant)),
        ("constant_as_a_wave", "√2 for the constant",
         _with(P=_constant_as_a_wave, B=_constant_as_a_wave)),
    )  # fmt: skip


def _norms(N, first=1):
    """q qᵀ with q_i = √(2i + first); N − ½ q qᵀ is LegS's A."""
    q = np.sqrt(2 * np.arange(len(N)) + first)
    return np.outer(q, q)


MATRIX.plant(
    ("legs_itself", "A, not its normal part", of_result(lambda N: N - _norms(N) / 2)),
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
    ("added_norm", "A + q qᵀ", of_result(lambda N: N + _norms(N) / 2)),
    ("subtracted", "A − p pᵀ", of_result(lambda N: N - _norms(N))),
    ("counted_from_one", "√(i+½) with i from 1", of_result(lambda N:
     np.where(np.eye(len(N)), -0.5, np.sign(N) * _norms(N, first=3) / 2))),
    ("in_single", "single precision inside", of_result(lambda N: single(N).astype(float))),
    ("narrow", "single precision returned", of_result(single)),
)  # fmt: skip


def _interleaved(right, *, n, blocks):
    """State by state instead of block by block."""
    w, V = right(n=n, blocks=blocks)
    return w, V.reshape(blocks, n // blocks, n).swapaxes(0, 1).reshape(n, n)


def _sorted_throughout(right, *, n, blocks):
    w, V = right(n=n, blocks=blocks)
    return w[np.argsort(w.imag, kind="stable")] if blocks > 1 else w[::-1], V


def _first_block_only(right, *, n, blocks):
    """The other blocks have zero frequencies."""
    w, V = right(n=n, blocks=blocks)
    return np.where(np.arange(n) < max(1, n // blocks // 2), w, 0), V


def _modes_of_legs(right, *, n, blocks):
    """The modes of LegS itself, in every block."""
    w, V = np.linalg.eig(HIPPO_LEGS.reference(n=n // blocks)[0].astype(complex))
    return np.tile(w, blocks), np.kron(np.eye(blocks), V)


MODES.plant(
    ("transposed", "Vᵀ for V", _with(V=np.transpose)),
    ("adjoint", "V⁻¹ for V", _with(V=lambda V: V.conj().T)),
    ("conjugated", "V* for V", _with(V=np.conj)),
    ("growing", "−w", _with(w=np.negative)),
    ("skew_part", "w + ½", _with(w=lambda w: w + 0.5)),
    ("full_decay", "w − ½", _with(w=lambda w: w - 0.5)),
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
     _with(V=lambda V: V / np.abs(V).max(axis=0))),
    ("eigenbasis", "modes of LegS itself", _modes_of_legs),
)  # fmt: skip

BUGS = [bug for p in (*MEASURES, MATRIX, MODES) for bug in p.bugs]
