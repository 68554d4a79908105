import numpy as np
import pytest
from judging import plugin, run

import refssm
from refssm.conformance.judging.grading import BEYOND, judge
from refssm.conformance.planted.dplr import WHOLE as PLANTED
from refssm.dplr import (
    DPLR_KERNEL,
    DPLR_KERNEL_ALIASED,
    dplr_kernel,
    dplr_kernel_aliased,
    dplr_kernel_vjp,
)

LENGTHS = [1, 2, 3, 16, 31, 64]


def recurrence(A, B, C, dt, l):
    """C Ā^k B̄ step by step, with the bilinear map."""
    I = np.eye(len(A))
    A_bar, x = np.linalg.solve(I - dt * A / 2, I + dt * A / 2), np.linalg.solve(I - dt * A / 2, B)
    K, x = [], dt * x
    for _ in range(l):
        K.append(C @ x)
        x = A_bar @ x
    return np.array(K)


def legs(n):
    """A and B of LegS, and w, P, V of its normal plus low-rank form."""
    r = np.sqrt(2 * np.arange(n) + 1.0)
    A = -np.tril(np.outer(r, r), -1) - np.diag(np.arange(n) + 1.0)
    p = np.sqrt(np.arange(n) + 0.5)
    skew = A + np.outer(p, p) + np.eye(n) / 2
    frequencies, V = np.linalg.eigh(-1j * skew)
    return A, r, -0.5 + 1j * frequencies, V.conj().T @ p[:, None], V


def legt(n):
    """A and B of LegT with window 1; the diagonal is exactly imaginary, with 0 for odd n."""
    i, r = np.arange(n), np.sqrt(2 * np.arange(n) + 1.0)
    A = -np.outer(r, r) * np.where(i[:, None] >= i, 1, (-1.0) ** (i[:, None] - i))
    halves = np.stack([np.where(i % 2 == 1, r, 0), np.where(i % 2 == 0, r, 0)], axis=-1)
    frequencies, V = np.linalg.eigh(-1j * (A + halves @ halves.T))
    frequencies = np.where(np.abs(frequencies) < n * np.finfo(float).eps * n, 0, frequencies)
    return A, r, 1j * frequencies, V.conj().T @ halves, V


def fourier(n):
    """The sliding Fourier window of length 1, mean of the ends: A, B, w, P, V."""
    b = np.where(np.arange(n) % 2 == 0, np.sqrt(2), 0.0)
    b[0] = 1
    S = np.zeros((n, n))
    for k in range(n // 2):
        S[2 * k, 2 * k + 1], S[2 * k + 1, 2 * k] = -2 * np.pi * k, 2 * np.pi * k
    frequencies, V = np.linalg.eigh(-1j * S)
    return S - 2 * np.outer(b, b), 2 * b, 1j * frequencies, V.conj().T @ (2**0.5 * b[:, None]), V


def of(system, n, dt, seed=1):
    """The kernel's arguments for a HiPPO system, and its dense recurrence as a function of l."""
    A, B, w, P, V = system(n)
    C = np.random.default_rng(seed).standard_normal(n)
    arguments = (w, P, P, V.conj().T @ B, C @ V, np.array(dt))
    return arguments, lambda l: recurrence(A, B, C, dt, l)


def system(n=5, r=2, seed=3, kind=complex):
    """A damped system with Q ≠ P."""
    rng = np.random.default_rng(seed)

    def normal(*shape):
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if kind is complex else x

    w = -0.5 - rng.random(n) + (5j * rng.standard_normal(n) if kind is complex else 0)
    P = normal(n, r)
    turned = 1 + (0.5j if kind is complex else 0)
    return w, P, turned * P, normal(n), normal(n), np.array(0.1)


def distance(K, wanted):
    """The largest error relative to the largest entry."""
    return np.abs(K - wanted).max() / np.abs(wanted).max()


def test_legs_in_double_precision_is_its_dense_recurrence_to_1e_12():
    arguments, dense = of(legs, 64, 1e-2)
    assert distance(dplr_kernel(*arguments, l=4096), dense(4096)) < 1e-12


def single(arguments):
    return [x.astype(np.complex64 if np.iscomplexobj(x) else np.float32) for x in arguments]


def of_single(arguments):
    """The arguments after rounding to single precision, as double precision."""
    return [x.astype(np.complex128 if np.iscomplexobj(x) else float) for x in single(arguments)]


@pytest.mark.long
@pytest.mark.parametrize("l", [4096, 16384, 65536])
def test_legs_in_single_precision_is_right_to_1e_5_however_long(l):
    arguments, _ = of(legs, 64, 1e-3)
    exact = dplr_kernel(*of_single(arguments), l=l)
    assert distance(dplr_kernel(*single(arguments), l=l), exact) < 1e-5


@pytest.mark.parametrize("name", ["published_by_luck", "rounded_root"])
def test_nodes_that_are_powers_of_a_rounded_root_lose_more_digits_the_longer_it_is(name):
    arguments, _ = of(legs, 64, 1e-3)
    planted = next(b for b in PLANTED.bugs if b.name == name).forward
    errors = []
    with np.errstate(all="ignore"):
        for l in (1024, 4096, 16384):
            exact = dplr_kernel(*of_single(arguments), l=l)
            errors.append(distance(planted(*single(arguments), l=l), exact))
    assert errors[1] > 3e-4  # the multiplied-out form with exact nodes has errors below 1e-5
    assert errors == sorted(errors)


@pytest.mark.parametrize("l", LENGTHS)
@pytest.mark.parametrize("kind", [float, complex])
def test_rank_zero_is_the_diagonal_kernel(l, kind):
    w, P, Q, B, C, dt = system(r=0, kind=kind)
    A_bar, B_bar = (1 + dt * w / 2) / (1 - dt * w / 2), dt / (1 - dt * w / 2) * B
    diagonal = (C * B_bar * A_bar ** np.arange(l)[:, None]).sum(-1)
    assert dplr_kernel(w, P, Q, B, C, dt, l=l).dtype == kind
    assert judge(DPLR_KERNEL, lambda *_, l: diagonal, w, P, Q, B, C, dt, l=l).ok


@pytest.mark.parametrize("l", LENGTHS)
@pytest.mark.parametrize("r", [0, 1, 2, 5, 7])
def test_any_rank_at_any_length_is_the_dense_recurrence(l, r):
    w, P, Q, B, C, dt = system(r=r)
    dense = recurrence(np.diag(w) - P @ Q.conj().T, B, C, float(dt), l)
    assert judge(DPLR_KERNEL, lambda *_, l: dense, w, P, Q, B, C, dt, l=l).ok


POLES_AT_NODES = [(fourier, 8), (legt, 5), (legt, 6), (legs, 5)]


@pytest.mark.parametrize("l", LENGTHS)
@pytest.mark.parametrize(
    ("measure", "n"), POLES_AT_NODES, ids=["fourier", "legt5", "legt6", "legs5"]
)
def test_a_pole_of_the_normal_part_at_zero_is_no_obstacle(measure, n, l):
    arguments, dense = of(measure, n, 0.05)
    if measure is fourier or (measure is legt and n % 2):
        assert (arguments[0] == 0).any()
    assert judge(DPLR_KERNEL, lambda *_, l: dense(l) + 0j, *arguments, l=l).ok


def test_an_integrator_is_constant():
    zeros = np.zeros((1, 1))
    K = dplr_kernel([0.0], zeros, zeros, [3.0], [2.0], 0.25, l=6)
    assert K.tolist() == [1.5] * 6


def test_a_mode_that_nobody_drives_or_hears_adds_nothing():
    w, P, Q, B, C, dt = system(r=1)
    with_it = [np.append(x, 0) for x in (w, B, C)]
    P_0, Q_0 = (np.vstack([x, 0 * x[:1]]) for x in (P, Q))
    K = dplr_kernel(with_it[0], P_0, Q_0, with_it[1], with_it[2], dt, l=16)
    assert judge(DPLR_KERNEL, lambda *_, l: K, w, P, Q, B, C, dt, l=16).ok


def test_a_mode_exactly_at_the_node_a_quarter_around():
    # Ā = −i at dt w = 2 (1 − i)/(1 + i) = −2i: the powers are exact quarter turns
    zeros = np.zeros((1, 1))
    K = dplr_kernel([-2j], zeros, zeros, [1.0], [1.0], 1.0, l=8)
    B_bar = 1 / (1 + 1j)
    assert judge(
        DPLR_KERNEL, lambda *_, l: B_bar * np.array([1, -1j, -1, 1j] * 2),
        np.array([-2j]), zeros, zeros, np.ones(1), np.ones(1), np.ones(()), l=8,
    ).ok  # fmt: skip
    assert np.isfinite(K).all()


def test_the_spectrum_at_minus_one_is_the_alternating_sum():
    w, P, Q, B, C, dt = system()
    K = dplr_kernel(w, P, Q, B, C, dt, l=64)
    signs = (-1.0) ** np.arange(64)
    dense = recurrence(np.diag(w) - P @ Q.conj().T, B, C, float(dt), 64)
    # 64 terms, each with the error of the kernel
    assert abs((K * signs).sum() - (dense * signs).sum()) < 64 * 1e-12 * np.abs(dense).max()


def test_a_kernel_has_no_memory_of_earlier_calls():
    arguments = system()
    first = dplr_kernel(*arguments, l=32)
    longer = dplr_kernel(*arguments, l=64)
    assert np.array_equal(dplr_kernel(*arguments, l=32), first)
    assert judge(DPLR_KERNEL, lambda *_, l: longer[:32], *arguments, l=32).ok


@pytest.mark.parametrize("l", [1, 4, 7])
def test_the_aliased_kernel_is_the_sum_over_all_periods(l):
    arguments = system()
    periods = 2 + int(2000 / l)
    whole = dplr_kernel(*arguments, l=periods * l)  # e^(−0.5·0.1·2000) is below 2^-53
    wrapped = whole.reshape(periods, l).sum(0)
    assert judge(DPLR_KERNEL_ALIASED, lambda *_, l: wrapped, *arguments, l=l).ok


def test_the_aliased_kernel_of_a_pole_at_a_node_that_feedback_moves_is_finite():
    arguments, dense = of(legt, 5, 0.05)
    assert (arguments[0] == 0).any()
    wrapped = dense(16 * 400).reshape(400, 16).sum(0) + 0j
    assert judge(DPLR_KERNEL_ALIASED, lambda *_, l: wrapped, *arguments, l=16).ok
    assert np.isfinite(dplr_kernel_aliased(*arguments, l=16)).all()


def test_real_systems_have_real_kernels_and_real_gradients():
    arguments = system(kind=float)
    K = dplr_kernel(*arguments, l=9)
    assert K.dtype == float
    gradients = dplr_kernel_vjp(np.ones(9), *arguments, l=9)
    assert [g.dtype for g in gradients] == [float] * 6
    assert [g.shape for g in gradients] == [np.shape(x) for x in arguments]


def test_a_conjugate_pair_is_a_real_system():
    w, P, Q, B, C, dt = system(n=3, r=1)
    pairs = [np.concatenate([x, x.conj()]) for x in (w, B, C)]
    P_2, Q_2 = (np.concatenate([x, x.conj()]) for x in (P, Q))
    K = dplr_kernel(pairs[0], P_2, Q_2, pairs[1], pairs[2], dt, l=32)
    real = np.real(K) + 0j
    assert judge(DPLR_KERNEL, lambda *_, l: real, pairs[0], P_2, Q_2, *pairs[1:], dt, l=32).ok


def test_sizes_that_disagree_are_named():
    w, P, Q, B, C, dt = system()
    with pytest.raises(
        ValueError, match="dplr_kernel: `Q` has r=1, but earlier arguments have r=2"
    ):
        dplr_kernel(w, P, Q[:, :1], B, C, dt, l=4)
    with pytest.raises(TypeError, match="`dt`"):
        dplr_kernel(w, P, Q, B, C, dt + 0j, l=4)


def nearly_cancelling():
    """Two modes that differ in the last bit, with opposite output signs."""
    w = np.array([-1, np.nextafter(np.float32(-1), -2)], np.complex64)
    empty, B, C = np.zeros((2, 0), np.complex64), [1, 1], [1, -1]
    return [w, empty, empty, *(np.array(x, np.complex64) for x in (B, C)), np.float32(0.5)]


def test_where_zeros_would_pass_nothing_is_judged_and_what_is_beyond_is_wrong():
    arrays = [np.asarray(x) for x in nearly_cancelling()]
    K = refssm.dplr_kernel(*arrays, l=16)
    for wrong, unjudged in ((K, True), (0 * K, True), (1e4 * K, False)):
        verdict = judge(DPLR_KERNEL, lambda *_, l, wrong=wrong: wrong, *arrays, l=16)
        assert (verdict.grade == "-", verdict.ok) == (unjudged, unjudged)
        assert verdict.notes == ((BEYOND,) if unjudged else ())
    wide = [x.astype(np.result_type(x, np.float64)) for x in arrays]
    assert not judge(DPLR_KERNEL, lambda *_, l: 0 * refssm.dplr_kernel(*wide, l=l), *wide, l=16).ok


@pytest.mark.long
def test_a_result_that_nothing_is_said_of_is_a_skip_and_no_pass(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    arrays = dict(zip(DPLR_KERNEL.inputs, nearly_cancelling(), strict=True))
    np.savez("pair.npz", **arrays, l=np.array(16))
    text = "import numpy as np\ndef dplr_kernel(w, P, Q, B, C, dt, *, l):\n"
    text += "    return np.zeros((*w.shape[:-1], l), w.dtype)\n"
    name = plugin(tmp_path, text)
    result, out, _ = run(capfd, "verify", name, "--inputs", "pair.npz")
    assert f"skip dplr_kernel   value [complex64]: {BEYOND}" in out
    assert result == 5  # nothing was left to check
