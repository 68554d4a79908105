"""Facts of the eight measures in closed form."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm

import refssm
from refssm import oracle
from refssm.catalog import OPERATORS
from refssm.conformance.standard import C

U = 2.0**-53
CONSTRUCTORS = [op for op in OPERATORS if op.family == "hippo" and not op.inputs]
WINDOWED = [op for op in CONSTRUCTORS if "window" in op.parameters]
FOURIER = [op for op in CONSTRUCTORS if "fourier" in op.name]
each = pytest.mark.parametrize("op", CONSTRUCTORS, ids=str)
windowed = pytest.mark.parametrize("op", WINDOWED, ids=str)
# rounding errors on the longest path to an entry; Γ, a power and π count as two
ROUNDINGS = {"hippo_legs": 1, "hippo_lmu": 1, "hippo_legt": 2, "hippo_lagt": 8}


def made(op, **given):
    """The result of the public function."""
    return getattr(refssm, op.name)(**given)


def calls(op):
    """Sizes up to 40, combined with the other keywords' values, each of which occurs."""
    others = {name: d.values for name, d in op.parameters.items() if name != "n"}
    sizes = [n for n in dict.fromkeys(op.parameters["n"].values) if n <= 40]
    for j in range(max(len(sizes), *map(len, others.values()), 1) if others else len(sizes)):
        given = {name: values[j % len(values)] for name, values in others.items()}
        yield {"n": sizes[j % len(sizes)], **given}


@each
def test_every_entry_is_right_to_its_roundings(op):
    for given in calls(op):
        for y, exact in zip(made(op, **given), oracle.evaluate(op, **given), strict=True):
            allowed = ROUNDINGS.get(op.name, 4) * U * np.abs(exact)
            assert y.dtype == np.float64
            assert (np.abs(y - exact) <= allowed).all(), given


def test_a_thousand_laguerre_coefficients_keep_their_digits():
    alpha, n = -0.75, 1000
    A, B = refssm.hippo_lagt(n=n, alpha=alpha, beta=0.5)
    with mpmath.mp.workdps(40):
        a = mpmath.mpf(alpha)
        L = [mpmath.sqrt(mpmath.gamma(i + a + 1) / mpmath.factorial(i)) for i in (0, 500, n - 1)]
        exact = [-L[0] / L[2], -L[1] / L[2]]
        at_end = mpmath.binomial(n - 1 + a, n - 1) / L[2] / mpmath.sqrt(mpmath.gamma(1 - a))
        exact.append(at_end * mpmath.mpf(0.5) ** ((1 - a) / 2))
        errors = [abs(y / x - 1) for y, x in zip((A[-1, 0], A[-1, 500], B[-1]), exact, strict=True)]
    assert max(errors) <= ROUNDINGS["hippo_lagt"] * U


def test_the_eigenvalues_of_legs_are_minus_one_to_minus_n():
    A, _ = refssm.hippo_legs(n=300)
    assert np.array_equal(np.triu(A), np.diag(-1.0 - np.arange(300)))


def test_four_coefficients_of_legs_by_hand():
    A, B = refssm.hippo_legs(n=4)
    squares = [[1, 0, 0, 0], [3, 4, 0, 0], [5, 15, 9, 0], [7, 21, 35, 16]]
    assert np.array_equal(A, -np.sqrt(squares))
    assert np.array_equal(B, np.sqrt([1, 3, 5, 7]))


def test_three_coefficients_of_legt_by_hand():
    A, B = refssm.hippo_legt(n=3)
    squares = np.array([[1, -3, 5], [3, 9, -15], [5, 15, 25]])
    assert np.array_equal(A, -np.sign(squares) * np.sqrt(np.abs(squares)))
    assert np.array_equal(B, np.sqrt([1, 3, 5]))


def test_three_coefficients_of_lmu_by_hand():
    A, B = refssm.hippo_lmu(n=3, window=0.5)
    assert np.array_equal(A, [[-2, -2, -2], [6, -6, -6], [-10, 10, -10]])
    assert np.array_equal(B, [2, -6, 10])


def test_one_coefficient_of_lmu_is_a_low_pass_filter_and_the_trace_is_minus_the_square_of_n():
    A, B = refssm.hippo_lmu(n=1, window=0.5)
    assert (A.tolist(), B.tolist()) == ([[-2.0]], [2.0])
    assert [np.trace(refssm.hippo_lmu(n=n)[0]) for n in (1, 2, 7)] == [-1, -4, -49]


def test_the_eigenvalues_of_legs_do_not_say_how_fast_it_forgets():
    A, _ = refssm.hippo_legs(n=2)
    forgotten, e = expm(A), np.exp([-1.0, -2.0])
    by_hand = [[e[0], 0], [-np.sqrt(3) * (e[0] - e[1]), e[1]]]
    # a backward stable exponential of a matrix of norm below 3: its roundings grow by that factor
    assert np.abs(forgotten - by_hand).max() <= 64 * U
    assert 1.4 * e[0] < np.linalg.norm(forgotten[:, 0]) < np.exp(-0.5)
    for n in (3, 40):
        A, B = refssm.hippo_legs(n=n)
        product = np.outer(B, B)
        # two entries of A, a product of two roots: one rounding each, and one of each sum
        assert (np.abs(A + A.T + np.eye(n) + product) <= 8 * U * (product + 1)).all()


@pytest.mark.parametrize("window", [1.0, 0.75, 1000.0])
def test_lmu_is_legt_in_another_scale(window):
    i = np.arange(30)
    T = (-1.0) ** i * np.sqrt(2 * i + 1)
    (A, B), (A_lmu, B_lmu) = (f(n=30, window=window) for f in (refssm.hippo_legt, refssm.hippo_lmu))
    for y, z in ((T[:, None] * A / T, A_lmu), (T * B, B_lmu)):
        assert (np.abs(y - z) <= 8 * U * np.abs(z)).all()  # T twice, two products, on both sides


@pytest.mark.parametrize("name", ["legt", "chebt"])
def test_halves_are_a_window_of_two(name):
    made_of = getattr(refssm, f"hippo_{name}")
    for half, whole in zip(made_of(n=9, window=2), made_of(n=9), strict=True):
        assert np.array_equal(half, whole / 2)


def test_laguerre_of_rate_one_is_a_triangle_of_ones():
    A, B = refssm.hippo_lagt(n=9)
    assert np.array_equal(A, -np.tril(np.ones((9, 9))))
    assert np.array_equal(B, np.ones(9))


@pytest.mark.parametrize("beta", [0.25, 3.0, 64.0])
def test_laguerre_without_exponent_has_roots_of_the_rate(beta):
    A, B = refssm.hippo_lagt(n=5, beta=beta)
    assert np.array_equal(B, np.full(5, np.sqrt(beta)))
    assert np.array_equal(A, -np.tril(np.ones((5, 5)), -1) - (1 + beta) / 2 * np.eye(5))


def test_the_laguerre_of_s4_is_the_limit_of_slow_forgetting():
    for beta in (2.0**-20, 2.0**-40, 2.0**-1000):
        A, B = refssm.hippo_lagt(n=6, beta=beta)
        s4 = np.eye(6) / 2 - np.tril(np.ones((6, 6)))
        assert np.abs(A - s4).max() <= beta / 2
        assert np.array_equal(B / np.sqrt(beta), np.ones(6))


@pytest.mark.parametrize(
    ("name", "window", "ends"),
    [("fourier_naive", 2, 0.5), ("fourier", 2, 1.0), ("fourier", 1, 2.0)],
    ids=["fourier_decay", "fourier", "fourier2"],
)
def test_fourier_windows_are_those_of_s4_bit_for_bit(name, window, ends):
    frequencies = np.arange(8) * (2 // window)
    d = np.stack([np.zeros(8), frequencies], axis=-1).reshape(-1)[1:]
    b = np.array([1.0] + [0, 2**0.5] * 7 + [0])
    A = np.pi * (-np.diag(d, 1) + np.diag(d, -1)) - b[:, None] * b * ends
    made_A, made_B = getattr(refssm, f"hippo_{name}")(n=16, window=window)
    assert made_A.tobytes() == A.tobytes()
    assert made_B.tobytes() == (b * ends).tobytes()


def test_the_diagonal_fourier_form_is_damped_rotations():
    A, B = refssm.hippo_fourier_diagonal(n=6)
    turns = [A[i : i + 2, i : i + 2] for i in (0, 2, 4)]
    for k, turn in enumerate(turns):
        assert np.array_equal(turn, [[-0.5, -2 * np.pi * k], [2 * np.pi * k, -0.5]])
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = 0
    assert not A.any()
    assert np.array_equal(B, [1, 0, 2**0.5, 0, 2**0.5, 0])


@pytest.mark.parametrize("window", [1.0, 0.75])
def test_the_naive_fourier_window_is_the_complex_one_in_real_numbers(window):
    n, h = 12, 6
    A, _ = refssm.hippo_fourier_naive(n=n, window=window)
    modes = np.arange(1 - h, h)  # ∫ u e^{2πiks/w} ds: cosine plus i times sine
    Q = np.zeros((2 * h - 1, n), complex)  # unitary, except for the unused state
    for j, k in enumerate(modes):
        Q[j, 2 * abs(k)] = 1 if k == 0 else 0.5**0.5
        Q[j, 2 * abs(k) + 1] = 0 if k == 0 else np.sign(k) * 0.5**0.5 * 1j
    C_window = np.diag(2j * np.pi * modes / window) - 1 / window
    error = np.abs(Q @ A @ Q.conj().T - C_window).max()
    assert error <= C * n * U * np.linalg.norm(A)
    assert np.array_equal(A[1], np.zeros(n))
    assert np.array_equal(A[:, 1], np.zeros(n))


def _low_rank(name, n, window=1.0, beta=1.0):
    """P of A + P Pᵀ, and the remaining real part."""
    i, b = np.arange(n), np.tile([np.sqrt(2), 0], n // 2)
    b[0] = 1
    r = np.sqrt(2 * i + 1)
    halves = np.stack([r * (i % 2), r * (1 - i % 2)], axis=-1)
    return {
        "hippo_legs": (np.sqrt(i + 0.5)[:, None], -0.5),
        "hippo_legt": (halves / np.sqrt(window), 0),
        "hippo_lagt": (np.full((n, 1), np.sqrt(0.5)), -beta / 2),
        "hippo_fourier": (np.sqrt(2 / window) * b[:, None], 0),
        "hippo_fourier_naive": (np.sqrt(1 / window) * b[:, None], 0),
    }[name]


@pytest.mark.parametrize("n", [2, 16, 128])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("hippo_legs", {}),
        ("hippo_legt", {"window": 0.75}),
        ("hippo_lagt", {"beta": 3.0}),
        ("hippo_fourier", {"window": 0.75}),
        ("hippo_fourier_naive", {"window": 0.75}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_low_rank_part_makes_it_normal(name, given, n):
    A, _ = getattr(refssm, name)(n=n, **given)
    P, real = _low_rank(name, n, **given)
    N = A + P @ P.T
    skew = N - real * np.eye(n)
    assert np.abs(skew + skew.T).max() <= 8 * U * np.abs(A).max()  # sums of equal numbers
    commutator = np.linalg.norm(N @ N.T - N.T @ N)
    assert commutator <= C * n * U * np.linalg.norm(N) ** 2


def test_chebyshev_is_nilpotent():
    A, B = refssm.hippo_chebt(n=12)
    assert not np.triu(A).any()
    assert not np.linalg.matrix_power(A, 12).any()
    assert np.linalg.matrix_power(A, 11).any()  # each derivative has one degree less
    assert np.array_equal(B[1:], np.full(11, 4 / np.pi))


@windowed
def test_the_window_is_a_unit_of_time(op):
    for w in (0.5, 2, 1024.0):
        for y, unit in zip(made(op, n=8, window=w), made(op, n=8), strict=True):
            assert np.array_equal(y * w, unit)


@each
def test_a_result_is_double_precision_of_its_own_whatever_the_keywords_are(op):
    given = {name: np.float32(d.values[0]) for name, d in op.parameters.items() if name != "n"}
    first, second = made(op, n=np.int64(6), **given), made(op, n=6, **given)
    for y, z in zip(first, second, strict=True):
        assert y.dtype == np.float64
        assert np.array_equal(y, z)
        assert not np.shares_memory(y, z)
        assert y.flags.writeable


@each
@pytest.mark.parametrize("n", [0, -1, 2.0, True, None, "3"], ids=repr)
def test_what_is_no_size_is_told(op, n):
    kind = "an even integer >= 2" if op in FOURIER else "an integer >= 1"
    with pytest.raises(ValueError, match=f"^{op}: `n` must be {kind}, got {n!r}"):
        made(op, n=n)


@pytest.mark.parametrize("op", FOURIER, ids=str)
def test_an_odd_fourier_size_is_told(op):
    with pytest.raises(ValueError, match=f"^{op}: `n` must be an even integer >= 2, got 7"):
        made(op, n=7)


@windowed
@pytest.mark.parametrize("window", [0, -1.0, np.nan, np.inf, None, 1j], ids=repr)
def test_what_is_no_window_is_told(op, window):
    with pytest.raises(ValueError, match=f"^{op}: `window` must be a number above 0, got "):
        made(op, n=4, window=window)


@pytest.mark.parametrize("alpha", [-1, 1, 1.5, -2.0, np.nan], ids=repr)
def test_a_laguerre_exponent_out_of_bounds_is_told(alpha):
    wanted = "a number between -1 and 1, both excluded"
    with pytest.raises(ValueError, match=f"^hippo_lagt: `alpha` must be {wanted}, got "):
        refssm.hippo_lagt(n=3, alpha=alpha)


@pytest.mark.parametrize("beta", [0, -1, np.inf, np.nan], ids=repr)
def test_a_laguerre_rate_out_of_bounds_is_told(beta):
    with pytest.raises(ValueError, match=r"^hippo_lagt: `beta` must be a number above 0, got "):
        refssm.hippo_lagt(n=3, beta=beta)


@each
def test_sizes_are_keywords(op):
    positional = getattr(refssm, op.name)
    with pytest.raises(TypeError, match=f"^{op}: too many positional arguments"):
        positional(4)
    with pytest.raises(TypeError, match=f"^{op}: missing a required"):
        made(op)
