"""Planted bugs in normal plus low rank: of any measure, and of each."""

import numpy as np

from refssm.conformance.honest.nplr.systems import SYSTEMS
from refssm.conformance.planted.arithmetic import single
from refssm.conformance.planted.planting import Planting, every_third_call, instead, of_result
from refssm.nplr import NPLR_FOURIER, NPLR_FOURIER_NAIVE, NPLR_LAGT, NPLR_LEGS, NPLR_LEGT

LEGS, LEGT, LAGT, FOURIER, NAIVE = MEASURES = [
    Planting(op, "complex128")
    for op in (NPLR_LEGS, NPLR_LEGT, NPLR_LAGT, NPLR_FOURIER, NPLR_FOURIER_NAIVE)
]
ROOT = np.sqrt(2)


def _upper_doubled(w, P, B, V):
    """The members with Im w > 0 stand for their pairs, the others are left out."""
    doubled = 2 * B
    doubled[: len(B) // 2] = 0
    return w, P, doubled, V


def _one_of_each_pair(w, P, B, V):
    """S4's storage: the second half only."""
    half = len(w) // 2
    return w[half:], P[half:], B[half:], V[:, half:]


def _rotated_without_conjugate(w, P, B, V):
    """Vᵀp and Vᵀb, V of other phases."""
    turn = np.exp(1j * np.arange(len(w)))
    return w, turn[:, None] * P, turn * B, V * turn


def _without_mode_zero(w, P, B, V):
    """The mode before the last replaced by the last."""
    w, P, B, V = w.copy(), P.copy(), B.copy(), V.copy()
    w[:-1][-1:], P[:-1][-1:], B[:-1][-1:], V[:, :-1][:, -1:] = w[-1], P[-1], B[-1], V[:, -1:]
    return w, P, B, V


ANY = (
    ("transposed", "Vᵀ for V", of_result(lambda w, P, B, V: (w, P, B, V.T))),
    ("adjoint", "Vᴴ for V", of_result(lambda w, P, B, V: (w, P, B, V.conj().T))),
    ("conjugated", "V* for V", of_result(lambda w, P, B, V: (w, P, B, V.conj()))),
    ("sorted_alone", "w descending, the vectors not",
     of_result(lambda w, P, B, V: (w[::-1], P, B, V))),
    ("rescaled", "vectors with a largest entry of 1",
     of_result(lambda w, P, B, V: (w, P, B, V / np.abs(V).max(axis=0)))),
    ("real_part_less_a_half", "Re w − ½", of_result(lambda w, P, B, V: (w - 0.5, P, B, V))),
    ("growing", "−w for w", of_result(lambda w, P, B, V: (-w, P, B, V))),
    ("in_turns", "frequencies in turns, not radians",
     of_result(lambda w, P, B, V: (w.real + 1j * w.imag / (2 * np.pi), P, B, V))),
    ("full_norm_in_p", "√2 P: p pᵀ for ½ p pᵀ", of_result(lambda w, P, B, V: (w, ROOT * P, B, V))),
    ("half_norm_in_p", "P/√2", of_result(lambda w, P, B, V: (w, P / ROOT, B, V))),
    ("no_low_rank", "P left out", of_result(lambda w, P, B, V: (w, 0 * P, B, V))),
    ("normed_as_p", "B/√2, of the measure that P has",
     of_result(lambda w, P, B, V: (w, P, B / ROOT, V))),
    ("pairs_doubled", "2 B", of_result(lambda w, P, B, V: (w, P, 2 * B, V))),
    ("half_doubled", "2 B where Im w > 0", of_result(_upper_doubled)),
    ("one_of_each_pair", "half of the modes", of_result(_one_of_each_pair)),
    ("real_vectors", "Re V", of_result(lambda w, P, B, V: (w, P, B, V.real + 0j))),
    ("half_precision_of_double", "single precision inside",
     of_result(lambda *y: tuple(single(x).astype(complex) for x in y))),
    ("vectors_permuted", "columns of V one on",
     of_result(lambda w, P, B, V: (w, P, B, np.roll(V, 1, 1)))),
    ("rows_permuted", "states in reverse", of_result(lambda w, P, B, V: (w, P, B, V[::-1]))),
    ("rotated_without_conjugate", "Vᵀp for Vᴴp", of_result(_rotated_without_conjugate)),
    ("without_mode_zero", "one mode twice, another never", of_result(_without_mode_zero)),
    ("narrow", "single precision returned", of_result(lambda *y: tuple(map(single, y)))),
)  # fmt: skip


def _from(op, made):
    """The right w, P, B, V made into others with A, p and b."""
    return lambda right, **sizes: made(*right(**sizes), *SYSTEMS[op](**sizes))


def _eigenbasis(w, P, B, V, A, p, b):
    """A diagonalized as it is: V is not unitary and nothing is left for P."""
    w, V = np.linalg.eig(A.astype(complex))
    return w, np.zeros(p.shape, complex), V.conj().T @ b, V


def _symmetric_part_lost(w, P, B, V, A, p, b):
    """The Hermitian part of −iA: p pᵀ is dropped, and P is then added on top."""
    frequencies, V = np.linalg.eigh(-1j * np.tril(A))  # reads one triangle
    return 1j * frequencies, V.conj().T @ p, V.conj().T @ b, V


def _unrepeatable():
    """Phases that depend on the call are right; frequencies that do are not."""
    third = every_third_call()
    return of_result(lambda w, P, B, V: (third(lambda: w), P, B, V))


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
    _p.plant(("unrepeatable", "depends on the call", _unrepeatable()), by="repeat")


def _window_once(right, *, n, window=1.0):
    """√(2i+1)/w in both P and B."""
    w, P, B, V = right(n=n, window=window)
    return w, P / np.sqrt(window), B, V


def _unnormed_input(right, *, n, beta=1.0):
    w, P, B, V = right(n=n, beta=beta)
    return w, P, B / np.sqrt(beta), V


def _periodic(right, *, n, beta=1.0):
    """e^{iθn} = 1 for −1: the waves of a circle."""
    j, theta = np.arange(n), 2 * np.pi * np.arange(n) / n
    w = -beta / 2 + 0.5j / np.tan(np.where(theta, theta, np.pi) / 2)
    _, P, B, _ = right(n=n, beta=beta)
    return w, P, B, np.exp(1j * np.outer(j, theta)) / np.sqrt(n)


def _dead_state_driven(w, P, B, V):
    """B and P of the state of sin 0 as those of the others."""
    constant = len(w) // 2 - 1
    return w, np.full_like(P, P[constant]), np.full_like(B, B[constant]), V


def _constant_as_a_wave(w, P, B, V):
    """√2 for the constant too."""
    factor = np.where(np.arange(len(w)) == len(w) // 2 - 1, ROOT, 1)
    return w, factor[:, None] * P, factor * B, V


LEGT.plant(
    # S4's scale for window 1
    ("halved", "A and B halved", lambda right, *, n, window=1.0: right(n=n, window=2 * window)),
    # √(2i+1)/√(2w) in one column: the even and the odd half mixed
    ("rank_one", "rank 1", of_result(lambda w, P, B, V:
     (w, P.sum(-1, keepdims=True) * np.array([1, 0]), B, V))),
    # both halves of the same sign in A
    ("halves_subtracted", "P* for P", of_result(lambda w, P, B, V: (w, P.conj(), B, V))),
    ("window_once", "P/√w", _window_once),
    ("window_ignored", "window ignored", lambda right, **sizes: right(**sizes | {"window": 1.0})),
)  # fmt: skip
LAGT.plant(
    ("unnormed_input", "b = 1 for √β", _unnormed_input),
    ("beta_ignored", "β ignored", lambda right, **sizes: right(**sizes | {"beta": 1.0})),
    # −(1 + β)/2 for −β/2
    ("decaying_as_alone", "Re w of A's diagonal", of_result(lambda w, P, B, V: (w - 0.5, P, B, V))),
    ("periodic", "waves of period n", _periodic),
)  # fmt: skip
for _p, _other in ((FOURIER, NAIVE), (NAIVE, FOURIER)):
    _p.plant(
        ("window_ignored", "window ignored",
         lambda right, **sizes: right(**sizes | {"window": 1.0})),
        ("other_factor", "the other factor of b bᵀ", instead(_other.op.reference)),
        ("dead_state_driven", "the state of sin 0 driven", of_result(_dead_state_driven)),
        ("constant_as_a_wave", "√2 for the constant", of_result(_constant_as_a_wave)),
    )  # fmt: skip
