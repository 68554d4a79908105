"""Planted bugs in normal plus low rank: of any measure, and of each."""

import numpy as np

from refssm.conformance.honest.nplr.systems import SYSTEMS
from refssm.conformance.planted import Deviation
from refssm.conformance.planted.nplr.blocks import DEVIATIONS as OF_BLOCKS
from refssm.nplr import NPLR_FOURIER, NPLR_FOURIER_NAIVE, NPLR_LAGT, NPLR_LEGT

VALUE = "value[complex128]"


def _upper_doubled(B):
    """The members with Im w > 0 stand for their pairs, the others are left out."""
    doubled = 2 * B
    doubled[: len(B) // 2] = 0
    return doubled


def _one_of_each_pair(w, P, B, V):
    """S4's storage: the second half only."""
    half = len(w) // 2
    return w[half:], P[half:], B[half:], V[:, half:]


def _rescaled(V):
    """Eigenvectors with a largest entry of 1."""
    return V / np.abs(V).max(axis=0)


def _shifted(w, by):
    """Another real part."""
    return w + by


def _in_turns(w):
    """Frequencies for angular frequencies."""
    return w.real + 1j * w.imag / (2 * np.pi)


def _single(*y):
    """The digits of single precision."""
    return tuple(x.astype(np.complex64).astype(complex) for x in y)


ROOT = np.sqrt(2)
# what is returned in place of w, P, B, V
CHANGES = [
    ("transposed", "Vᵀ for V", lambda w, P, B, V: (w, P, B, V.T)),
    ("adjoint", "Vᴴ for V", lambda w, P, B, V: (w, P, B, V.conj().T)),
    ("conjugated", "V* for V", lambda w, P, B, V: (w, P, B, V.conj())),
    ("sorted_alone", "w descending, the vectors not", lambda w, P, B, V: (w[::-1], P, B, V)),
    ("rescaled", "vectors with a largest entry of 1", lambda w, P, B, V: (w, P, B, _rescaled(V))),
    ("real_part_less_a_half", "Re w − ½", lambda w, P, B, V: (_shifted(w, -0.5), P, B, V)),
    ("growing", "−w for w", lambda w, P, B, V: (-w, P, B, V)),
    ("in_turns", "frequencies in turns, not radians", lambda w, P, B, V: (_in_turns(w), P, B, V)),
    ("full_norm_in_p", "√2 P: p pᵀ for ½ p pᵀ", lambda w, P, B, V: (w, ROOT * P, B, V)),
    ("half_norm_in_p", "P/√2", lambda w, P, B, V: (w, P / ROOT, B, V)),
    ("no_low_rank", "P left out", lambda w, P, B, V: (w, 0 * P, B, V)),
    ("normed_as_p", "B/√2, of the measure that P has", lambda w, P, B, V: (w, P, B / ROOT, V)),
    ("pairs_doubled", "2 B", lambda w, P, B, V: (w, P, 2 * B, V)),
    ("half_doubled", "2 B where Im w > 0", lambda w, P, B, V: (w, P, _upper_doubled(B), V)),
    ("one_of_each_pair", "half of the modes", _one_of_each_pair),
    ("real_vectors", "Re V", lambda w, P, B, V: (w, P, B, V.real + 0j)),
    ("half_precision_of_double", "single precision inside", _single),
    ("vectors_permuted", "columns of V one on", lambda w, P, B, V: (w, P, B, np.roll(V, 1, 1))),
    ("rows_permuted", "states in reverse", lambda w, P, B, V: (w, P, B, V[::-1])),
]


def _changed(op, change):
    return lambda **sizes: change(*op.reference(**sizes))


def not_rotated_p(op):
    """P in the original basis."""
    return lambda **sizes: _with(op, sizes, P=SYSTEMS[op](**sizes)[1].astype(complex))


def not_rotated_b(op):
    """B in the original basis."""
    return lambda **sizes: _with(op, sizes, B=SYSTEMS[op](**sizes)[2].astype(complex))


def rotated_without_conjugate(op):
    """Vᵀp and Vᵀb, V of other phases."""

    def decomposition(**sizes):
        w, P, B, V = op.reference(**sizes)
        turn = np.exp(1j * np.arange(len(w)))
        return w, turn[:, None] * P, turn * B, V * turn

    return decomposition


def eigenbasis(op):
    """A diagonalized as it is: V is not unitary and nothing is left for P."""

    def decomposition(**sizes):
        A, p, b = SYSTEMS[op](**sizes)
        w, V = np.linalg.eig(A.astype(complex))
        return w, np.zeros(p.shape, complex), V.conj().T @ b, V

    return decomposition


def symmetric_part_lost(op):
    """The Hermitian part of −iA: p pᵀ is dropped, and P is then added on top."""

    def decomposition(**sizes):
        A, p, b = SYSTEMS[op](**sizes)
        frequencies, V = np.linalg.eigh(-1j * np.tril(A))  # reads one triangle
        back = V.conj().T
        return 1j * frequencies, back @ p, back @ b, V

    return decomposition


def without_mode_zero(op):
    """The mode before the last replaced by the last."""

    def decomposition(**sizes):
        w, P, B, V = (x.copy() for x in op.reference(**sizes))
        w[:-1][-1:], P[:-1][-1:], B[:-1][-1:], V[:, :-1][:, -1:] = w[-1], P[-1], B[-1], V[:, -1:]
        return w, P, B, V

    return decomposition


def _with(op, sizes, **changes):
    """What the reference returns, some outputs replaced."""
    y = dict(zip(op.outputs, op.reference(**sizes), strict=True))
    return tuple((y | changes).values())


BUILT = [
    (not_rotated_p, "P in the original basis"),
    (not_rotated_b, "B in the original basis"),
    (rotated_without_conjugate, "Vᵀp for Vᴴp"),
    (eigenbasis, "eigenvectors of A itself"),
    (symmetric_part_lost, "the eigenvectors of one triangle of A"),
    (without_mode_zero, "one mode twice, another never"),
]


def _narrow(op):
    return lambda **sizes: tuple(x.astype(np.complex64) for x in op.reference(**sizes))


def _every_third_call(op):
    """Phases that depend on the call are right; frequencies that do are not."""
    calls = [0]

    def decomposition(**sizes):
        calls[0] += 1
        w, P, B, V = op.reference(**sizes)
        return (w if calls[0] % 3 else 1.01 * w), P, B, V

    return decomposition


def _of_any_measure(op):
    for name, what, change in CHANGES:
        if op is NPLR_LAGT and name == "transposed":
            continue  # right: its V is symmetric but for the order
        yield Deviation(op.name, name, VALUE, what, _changed(op, change))
    for build, what in BUILT:
        yield Deviation(op.name, build.__name__, VALUE, what, build(op))
    yield Deviation(op.name, "narrow", VALUE, "single precision returned", _narrow(op))
    often = _every_third_call(op)
    yield Deviation(op.name, "unrepeatable", "repeat[complex128]", "depends on the call", often)


def _ignoring(op, name):
    """A keyword that is not looked at."""
    return lambda **sizes: op.reference(**sizes | {name: 1.0})


def halved(*, n, window=1.0):
    """S4's scale: A and B halved for window 1."""
    return NPLR_LEGT.reference(n=n, window=2 * window)


def rank_one(*, n, window=1.0):
    """√(2i+1)/√(2w) in one column: the even and the odd half mixed."""
    w, P, B, V = NPLR_LEGT.reference(n=n, window=window)
    return w, P.sum(-1, keepdims=True) * np.array([1, 0]), B, V


def halves_subtracted(*, n, window=1.0):
    """Both halves of the same sign in A: P* for P."""
    w, P, B, V = NPLR_LEGT.reference(n=n, window=window)
    return w, P.conj(), B, V


def window_once(*, n, window=1.0):
    """√(2i+1)/w in both P and B."""
    w, P, B, V = NPLR_LEGT.reference(n=n, window=window)
    return w, P / np.sqrt(window), B, V


def unnormed_input(*, n, beta=1.0):
    """b = 1 for b = √β."""
    w, P, B, V = NPLR_LAGT.reference(n=n, beta=beta)
    return w, P, B / np.sqrt(beta), V


def decaying_as_alone(*, n, beta=1.0):
    """−(1 + β)/2, the diagonal of A, for −β/2."""
    w, P, B, V = NPLR_LAGT.reference(n=n, beta=beta)
    return w - 0.5, P, B, V


def periodic(*, n, beta=1.0):
    """e^{iθn} = 1 for −1: the waves of a circle."""
    j, theta = np.arange(n), 2 * np.pi * np.arange(n) / n
    w = -beta / 2 + 0.5j / np.tan(np.where(theta, theta, np.pi) / 2)
    _, P, B, _ = NPLR_LAGT.reference(n=n, beta=beta)
    return w, P, B, np.exp(1j * np.outer(j, theta)) / np.sqrt(n)


def dead_state_driven(op):
    """B and P of the state of sin 0 as those of the others."""

    def decomposition(*, n, window=1.0):
        w, P, B, V = op.reference(n=n, window=window)
        return w, np.full_like(P, P[n // 2 - 1]), np.full_like(B, B[n // 2 - 1]), V

    return decomposition


def constant_as_a_wave(op):
    """√2 for the constant too."""

    def decomposition(*, n, window=1.0):
        w, P, B, V = (x.copy() for x in op.reference(n=n, window=window))
        P[n // 2 - 1] *= np.sqrt(2)
        B[n // 2 - 1] *= np.sqrt(2)
        return w, P, B, V

    return decomposition


def _of_one(op, what, function, name=""):
    return Deviation(op.name, name or function.__name__, VALUE, what, function)


def _fourier(op, other):
    yield _of_one(op, "window ignored", _ignoring(op, "window"), "window_ignored")
    yield _of_one(op, "the other factor of b bᵀ", other.reference, "other_factor")
    yield _of_one(op, "the state of sin 0 driven", dead_state_driven(op), "dead_state_driven")
    yield _of_one(op, "√2 for the constant", constant_as_a_wave(op), "constant_as_a_wave")


DEVIATIONS = [
    *(bug for op in SYSTEMS for bug in _of_any_measure(op)),
    _of_one(NPLR_LEGT, "A and B halved", halved),
    _of_one(NPLR_LEGT, "rank 1", rank_one),
    _of_one(NPLR_LEGT, "P* for P", halves_subtracted),
    _of_one(NPLR_LEGT, "P/√w", window_once),
    _of_one(NPLR_LEGT, "window ignored", _ignoring(NPLR_LEGT, "window"), "window_ignored"),
    _of_one(NPLR_LAGT, "b = 1 for √β", unnormed_input),
    _of_one(NPLR_LAGT, "β ignored", _ignoring(NPLR_LAGT, "beta"), "beta_ignored"),
    _of_one(NPLR_LAGT, "Re w of A's diagonal", decaying_as_alone),
    _of_one(NPLR_LAGT, "waves of period n", periodic),
    *_fourier(NPLR_FOURIER, NPLR_FOURIER_NAIVE),
    *_fourier(NPLR_FOURIER_NAIVE, NPLR_FOURIER),
    *OF_BLOCKS,
]
