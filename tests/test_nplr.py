"""Normal plus low rank: properties of the decomposition and of its normal part."""

import numpy as np
import pytest
from mpmath import mp

import refssm
from refssm import oracle
from refssm.conformance.planted.nplr import SYSTEMS
from refssm.conformance.standard import C
from refssm.hippo import hippo_legs
from refssm.nplr import (
    BLOCK_DIAGONAL,
    NORMAL_LEGS,
    NPLR_FOURIER,
    NPLR_FOURIER_NAIVE,
    NPLR_LAGT,
    NPLR_LEGS,
    NPLR_LEGT,
    block_diagonal,
    normal_legs,
    nplr_fourier,
    nplr_fourier_naive,
    nplr_lagt,
    nplr_legs,
    nplr_legt,
)

U = 2.0**-53
# a keyword value that is neither 1 nor a power of two
NUMBERS = {NPLR_LEGS: {}, NPLR_LAGT: {"beta": 0.75}}
WINDOWED = {NPLR_LEGT, NPLR_FOURIER, NPLR_FOURIER_NAIVE}
REAL_PART = {NPLR_LEGS: -0.5, NPLR_LAGT: -0.375}
SIZES = (1, 2, 3, 8, 9, 16, 33, 64, 129)
EVEN = {NPLR_FOURIER, NPLR_FOURIER_NAIVE}
CASES = [(op, n) for op in SYSTEMS for n in SIZES if op not in EVEN or n % 2 == 0]
cases = pytest.mark.parametrize(("op", "n"), CASES, ids=[f"{op}-{n}" for op, n in CASES])
each = pytest.mark.parametrize("op", SYSTEMS, ids=str)


def numbers_of(op):
    return {"window": 0.75} if op in WINDOWED else NUMBERS[op]


def decomposed(op, n):
    """The result of the public function."""
    return getattr(refssm, op.name)(n=n, **numbers_of(op))


def norm(x):
    return float(np.linalg.norm(x))


def size_of(w, P):
    """‖w‖ + ‖P‖²: the sizes of the two parts of A."""
    return norm(w) + norm(P) ** 2


def not_normal(A):
    return norm(A @ A.T - A.T @ A)


@cases
def test_a_plus_p_pt_is_normal_and_a_is_not(op, n):
    A, p, _ = SYSTEMS[op](n=n, **numbers_of(op))
    # its entries have errors of 4u (|A| + |p||p|ᵀ), in both factors of both products; a matrix
    # product adds n u ‖N‖²
    bound = (16 + 2 * n) * U * (norm(A) + norm(p) ** 2) ** 2
    assert not_normal(A + p @ p.T) <= bound
    # for n = 2, LagT without β is normal, and so is Fourier's only active state
    assert n < 3 or not_normal(A) > bound


@cases
def test_it_is_the_matrix_and_the_input_of_the_measure(op, n):
    w, P, B, V = decomposed(op, n)
    A, p, b = SYSTEMS[op](n=n, **numbers_of(op))
    back, allowed = V.conj().T, C * n * U
    assert norm(back @ V - np.eye(n)) <= allowed
    assert norm(V @ (np.diag(w) - P @ P.conj().T) @ back - A) <= allowed * size_of(w, P)
    assert norm(V @ P @ (V @ P).conj().T - p @ p.T) <= allowed * norm(p) ** 2
    assert norm(V @ P - p) <= allowed * norm(p)
    assert norm(V @ B - b) <= allowed * norm(b)


@cases
def test_real_parts_pairs_and_real_modes_are_exact(op, n):
    w, P, B, V = decomposed(op, n)
    assert set(w.real) == {REAL_PART.get(op, 0.0)}
    assert (np.diff(w.imag) >= 0).all()
    alone = np.flatnonzero(w.imag == 0)
    assert len(alone) == (2 if op in EVEN else n % 2)
    assert (V[:, alone].imag == 0).all()
    assert (P[alone].imag == 0).all()
    twins = np.arange(n)[::-1]
    twins[alone] = alone  # each of the two modes at 0 is its own partner
    for x in (w, P.T, B, V):
        assert np.array_equal(x[..., twins], x.conj())


@cases
def test_the_phase_makes_b_real_and_positive_and_the_dead_state_is_the_only_zero(op, n):
    _, _, B, V = decomposed(op, n)
    dead = np.arange(n) == (n // 2 if op in EVEN else n)
    assert (B.imag == 0).all()
    assert (B.real[~dead] > 0).all()
    assert (B[dead] == 0).all()
    if op in EVEN:
        assert np.array_equal(V[:, n // 2 - 1 : n // 2 + 1], np.eye(n)[:, :2])


@pytest.mark.parametrize("n", [8, 9, 16])
@each
def test_it_agrees_with_fifty_digits(op, n):
    if op in EVEN and n % 2:
        n += 1
    w, P, B, V = decomposed(op, n)
    sizes = {"n": n, **numbers_of(op)}
    exact_w, exact_P, exact_B, exact_V = oracle.evaluate(op, **sizes)
    backward = C * n * U * size_of(w, P)
    assert norm(w - exact_w) <= backward  # Hoffman and Wielandt: a normal matrix's spectrum
    distances = np.abs(exact_w[:, None] - exact_w)
    gap = float(distances[distances > 2.0**-80].min())
    turned = backward / gap * np.sqrt(n)  # its rotation is at most perturbation/gap
    assert norm(V - exact_V) <= turned
    assert norm(P - exact_P) <= turned * norm(P)
    assert norm(B - exact_B) <= turned * norm(B)


@pytest.mark.parametrize("op", [NORMAL_LEGS, BLOCK_DIAGONAL], ids=str)
def test_the_normal_part_agrees_with_fifty_digits(op):
    sizes = {"n": 8, "blocks": 2} if op is BLOCK_DIAGONAL else {"n": 9}
    exact = oracle.evaluate(op, **sizes)
    got = op.reference(**sizes)
    for y, x in zip(got if isinstance(got, tuple) else (got,), exact, strict=True):
        assert norm(y - x) <= C * 8 * U * norm(x)  # the gaps of LegS at n = 4 are above 1


def test_one_and_two_states_by_hand():
    w, P, B, V = nplr_legs(n=1)
    assert (w.tolist(), B.tolist(), V.tolist()) == ([-0.5], [1], [[1]])
    assert P.tolist() == [[np.sqrt(0.5)]]
    assert [x.tolist() for x in nplr_legt(n=1, window=4.0)] == [[0], [[0, 0.5]], [0.25], [[1]]]
    assert [x.tolist() for x in nplr_lagt(n=1, beta=4.0)] == [[-2], [[np.sqrt(0.5)]], [2], [[1]]]
    w, P, B, V = nplr_fourier(n=2, window=2.0)
    assert (w.tolist(), P.tolist(), B.tolist()) == ([0, 0], [[1], [0]], [1, 0])
    assert V.tolist() == [[1, 0], [0, 1]]
    assert nplr_fourier_naive(n=2, window=4.0)[1].tolist() == [[0.5], [0]]


@pytest.mark.parametrize(
    ("made", "frequency"),
    [
        (nplr_legs(n=2), np.sqrt(3) / 2),
        (nplr_legs(n=3), np.sqrt(23) / 2),  # (3 + 5 + 15)/4
        (nplr_legt(n=2), np.sqrt(3)),
        (nplr_legt(n=3, window=0.5), 2 * np.sqrt(18)),  # (3 + 15) 4
        (nplr_lagt(n=2), 0.5),  # ½ cot(π/4)
        (nplr_lagt(n=3), np.sqrt(0.75)),  # ½ cot(π/6)
        (nplr_fourier(n=4, window=0.5), 4 * np.pi),
    ],
    ids=str,
)
def test_small_frequencies_in_closed_form(made, frequency):
    w, P, *_ = made
    assert abs(w[-1].imag - frequency) <= C * len(w) * U * size_of(w, P)


def test_the_poles_of_laguerre_are_cotangents_and_its_inputs_inverse_sines():
    n, beta = 6, 0.5
    w, P, B, _ = nplr_lagt(n=n, beta=beta)
    half_angles = np.pi * (2 * np.arange(n)[::-1] + 1) / (2 * n)
    with mp.workdps(30):
        frequencies = [mp.cot(mp.pi * (2 * j + 1) / (2 * n)) / 2 for j in range(n)[::-1]]
    assert norm(w.imag - np.array(frequencies, float)) <= C * n * U * norm(w)
    # each has some rounding errors of its angle, times (θ/2) cot(θ/2) ≤ π n/2
    assert norm(B.real * np.sin(half_angles) * np.sqrt(n) - np.sqrt(beta)) <= C * n**2 * U
    assert norm(P[:, 0] * np.sqrt(2 * beta) - B) <= C * U * norm(B)


@pytest.mark.parametrize("n", [3, 9, 33, 65])
def test_the_real_mode_of_an_odd_number_of_states(n):
    i = np.arange(n)
    legs = (-1.0) ** i / np.sqrt(2 * i + 1)  # S maps it to 0: its rows only change sign
    legt = np.zeros(n)
    legt[[0, -1]] = 1, 1 / np.sqrt(2 * n - 1)
    for op, wanted in ((NPLR_LEGS, legs), (NPLR_LEGT, legt), (NPLR_LAGT, (-1.0) ** i)):
        w, P, _, V = decomposed(op, n)
        gap = w[n // 2 + 1].imag
        turned = C * n * U * size_of(w, P) / gap
        v = V[:, n // 2].real
        assert norm(v - wanted / norm(wanted) * np.sign(v @ wanted)) <= turned


@pytest.mark.parametrize("n", [2, 5, 16, 64])
def test_sums_over_the_modes_of_legs(n):
    w, P, B, _ = nplr_legs(n=n)
    off_diagonal = (n**4 - n * (4 * n**2 - 1) / 3) / 4  # Σ_{i≠k} (2i+1)(2k+1)/4
    assert abs(norm(w.imag) ** 2 - off_diagonal) <= C * n * U * size_of(w, P) ** 2
    assert abs(norm(B) ** 2 - n**2) <= C * n * U * n**2
    assert abs(norm(P) ** 2 - n**2 / 2) <= C * n * U * n**2


def test_the_frequencies_of_legs_that_models_start_from():
    slowest, fastest = [], []
    for n in (16, 64, 128):
        upper = nplr_legs(n=n)[0].imag[n // 2 :]
        slowest.append(round(float(upper[0]), 4))
        fastest.append(round(float(upper[-1]), 3))
    assert slowest == [0.3520, 0.2639, 0.2352]
    assert fastest == [80.966, 1303.274, 5214.666]  # about n²/π − π/6


def test_conjugate_vectors_are_orthogonal_which_eigh_alone_does_not_give():
    n = 256
    _, V = np.linalg.eigh(-1j * (normal_legs(n=n) + np.eye(n) / 2))
    upper = V[:, n // 2 :]
    mirrored = np.concatenate([upper, upper.conj()], axis=1)
    ours = nplr_legs(n=n)[3]
    assert norm(ours.conj().T @ ours - np.eye(n)) <= C * n * U
    assert norm(mirrored.conj().T @ mirrored - np.eye(n)) > C * n * U


def test_a_call_gives_the_same_bits_again_and_its_own_memory():
    for first, second in zip(nplr_legs(n=33), nplr_legs(n=33), strict=True):
        assert np.array_equal(first, second)
        assert not np.shares_memory(first, second)


@pytest.mark.parametrize(("n", "blocks"), [(6, 3), (12, 4), (8, 8), (10, 1), (9, 3)])
def test_block_after_block_each_sorted_in_itself(n, blocks):
    size = n // blocks
    w, V = block_diagonal(n=n, blocks=blocks)
    one, _, _, vectors = nplr_legs(n=size)
    assert np.array_equal(w.reshape(blocks, size), [one] * blocks)
    for i in range(n):
        for k in range(n):
            inside = i // size == k // size
            assert V[i, k] == (vectors[i % size, k % size] if inside else 0)


def test_the_normal_part_of_legs_is_a_plus_p_pt():
    A, b = hippo_legs(n=7)
    N = normal_legs(n=7)
    assert norm(N - (A + np.outer(b, b) / 2)) <= C * U * norm(A)
    assert np.array_equal(N + N.T, -np.eye(7))
    assert normal_legs(n=1).tolist() == [[-0.5]]


@pytest.mark.parametrize("make", [nplr_legs, nplr_legt, nplr_lagt, normal_legs])
@pytest.mark.parametrize("n", [0, -1, 2.0, True, None], ids=repr)
def test_what_is_no_number_of_states_is_told(make, n):
    with pytest.raises(ValueError, match=f"^{make.__name__}: `n` must be an integer >= 1, got "):
        make(n=n)


@pytest.mark.parametrize("make", [nplr_fourier, nplr_fourier_naive])
def test_an_odd_number_of_fourier_states_is_told(make):
    with pytest.raises(
        ValueError, match=f"^{make.__name__}: `n` must be an even integer >= 2, got 3"
    ):
        make(n=3)


@pytest.mark.parametrize("number", [0.0, -1.0, np.inf, np.nan, "1"], ids=repr)
def test_what_is_no_length_or_rate_is_told(number):
    for make, name in ((nplr_legt, "window"), (nplr_fourier, "window"), (nplr_lagt, "beta")):
        with pytest.raises(
            ValueError, match=f"^{make.__name__}: `{name}` must be a number above 0"
        ):
            make(n=2, **{name: number})


def test_blocks_that_do_not_divide_are_told():
    with pytest.raises(ValueError, match=r"^block_diagonal: `blocks` must divide n=10, got 3$"):
        block_diagonal(n=10, blocks=3)
    with pytest.raises(
        ValueError, match=r"^block_diagonal: `blocks` must be an integer >= 1, got 0"
    ):
        block_diagonal(n=10, blocks=0)
    with pytest.raises(TypeError, match=r"^block_diagonal: missing a required argument: 'blocks'"):
        block_diagonal(n=10)  # pyright: ignore[reportCallIssue]
