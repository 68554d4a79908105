"""The diagonal kernels: one system beside the CPU mirror's, and what makes their modes special."""

import numpy as np
import pytest
from kernel_bounds import TURN, TYPES, assert_gradients_right, assert_right, normal
from on_target import given, taken
from planting_kernels import plant

import refssm_gpu.diagonal as gpu
from refssm.catalog import OPERATORS
from refssm.diagonal import DIAGONAL_KERNEL_BILINEAR
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import target

NAMES = (
    "diagonal_kernel_zoh", "diagonal_kernel_bilinear", "diagonal_kernel_zoh_real",
    "diagonal_kernel_bilinear_real", "dss_exp_kernel", "dss_softmax_kernel",
    "ema_kernel",
)  # fmt: skip
EVERY = [op for op in OPERATORS if op.name in NAMES]


def system(op, kind, batch=(), n=9):
    """Arguments of the operator: modes that decay at several rates, the rest normal numbers."""
    r = np.random.default_rng(len(op.name))
    real = np.finfo(kind).dtype
    made = []
    for name, domain in op.inputs.items():
        if name == "dt":
            made.append(np.exp(r.uniform(-5, -1, batch)).astype(real))
        elif name == "w":
            w = -np.exp(r.uniform(-3, 2, n))
            w = w + 9j * r.standard_normal(n) if np.dtype(kind).kind == "c" else w
            made.append(w.astype(kind))
        else:
            made.append(normal(real if domain.real else kind, *batch, n, seed=len(made)))
    return made


def check(op, arrays, l):
    assert_right(op, getattr(gpu, op.name), *arrays, l=l)
    assert_gradients_right(op, getattr(gpu, f"{op.name}_vjp"), *arrays, l=l)


@pytest.mark.parametrize("op", EVERY, ids=str)
def test_a_long_kernel_of_a_batch_is_right(op):
    check(op, system(op, TURN, (2,)), 2100)


@pytest.mark.long
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", EVERY, ids=str)
def test_a_long_kernel_is_right_in_every_type(op, kind):
    check(op, system(op, kind, (2,), 33), 4500)


@pytest.mark.long
@pytest.mark.parametrize("op", EVERY, ids=str)
def test_it_is_what_the_mirror_on_the_processor_gives(op):
    """Both compute logarithms and coefficients alike, in double precision."""
    arrays = system(op, "complex128", (1,))
    mine = taken(getattr(gpu, op.name)(*given(*arrays), l=3000))
    theirs = op.implementation("jit")(*arrays, l=3000)
    assert_right(op, lambda *_, **__: mine, *arrays, l=3000)
    assert_right(op, lambda *_, **__: theirs, *arrays, l=3000)


@pytest.mark.parametrize("l", [0, 1])
@pytest.mark.parametrize("op", EVERY, ids=str)
def test_kernels_without_modes_or_times_are_zeros(op, l):
    for n in (0, 2):
        arrays = system(op, TURN, (3,), n)
        k = taken(getattr(gpu, op.name)(*given(*arrays), l=l))
        gradients = taken(getattr(gpu, f"{op.name}_vjp")(*given(k, *arrays), l=l))
        assert k.shape == (3, l)
        assert [g.shape for g in gradients] == [x.shape for x in arrays]
        if n == 0:
            assert not k.any()


def test_a_root_of_zero_keeps_the_first_entry_only():
    one = np.ones(1, np.float32)
    got = gpu.diagonal_kernel_bilinear(*given(-2 * one, one, 6 * one, one[0]), l=4)
    assert np.array_equal(taken(got), [3, 0, 0, 0])


def test_a_negative_root_alternates():
    """dt·w = −6: Ā = −½ and the coefficient ¼."""
    one = np.ones(1)
    arguments = -6 * one, one, one, one[0]
    assert_right(DIAGONAL_KERNEL_BILINEAR, gpu.diagonal_kernel_bilinear, *arguments, l=9)
    got = taken(gpu.diagonal_kernel_bilinear(*given(*arguments), l=9))
    assert np.array_equal(np.sign(got), np.resize([1, -1], 9))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_strongly_growing_mode_of_the_softmax_does_not_overflow(sign):
    w, C = np.array([sign * 900.0, -0.1 + 2j]), np.array([2.0, 1j])
    op = next(op for op in EVERY if op.name == "dss_softmax_kernel")
    check(op, [w, C, np.array(0.5)], 130)


def test_rows_without_growing_modes_are_not_touched_by_the_second_launch():
    op = next(op for op in EVERY if op.name == "dss_softmax_kernel")
    w, C, dt = system(op, "complex64", (1,))
    both = gpu.dss_softmax_kernel(*given(np.stack([w, -w.conj()]), C, dt), l=300)
    alone = gpu.dss_softmax_kernel(*given(w, C, dt), l=300)
    assert np.array_equal(taken(both)[0], taken(alone)[0])


def test_a_kernel_is_two_launches(monkeypatch):
    monkeypatch.setattr(type(target()), "multiprocessors", 132)
    with settings() as now:
        gpu.diagonal_kernel_zoh(*given(*system(EVERY[0], "complex64", (2,))), l=64)
    assert len(now.counts) == 2


BUGS = {
    "steps_of_another_row": ("modes.cuh", "dt_[of(3)]", "dt_[0 * of(3)]"),
    "threads_behind_the_last_mode": ("modes.cuh", "i >= size.count", "i > size.count - 2"),
    "rising_modes_not_turned": ("modes.cuh", "W fallen = flag ? -z : z;", "W fallen = z;"),
    "no_negative_roots": ("modes_functions.cuh", "negative = root < 0;", "negative = root < -9;"),
    "series_too_short": ("modes_functions.cuh", "TERMS = 18", "TERMS = 5"),
    "logistic_overflows": ("averages.cuh", "(x >= 0 ? 1 : e) / (1 + e)", "e / (1 + e)"),
    "damping_forgotten": ("averages.cuh", "(S - m.p * m.s * T)", "(S - m.p * T)"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_a_kernel_is_seen(monkeypatch, tmp_path, bug):
    made = ["_MODES", "_MODES_BACK", "_AVERAGES", "_AVERAGES_BACK"]
    plant(monkeypatch, tmp_path, gpu, made, *BUGS[bug])
    with pytest.raises((AssertionError, HostError)):
        _all_facts()


def test_without_a_planted_bug_the_facts_hold():
    _all_facts()


def _all_facts():
    """Facts that together see each of the bugs above."""
    for op in EVERY:
        arrays = system(op, "float64", (2,))
        check(op, arrays, 20)
        if op.name == "dss_softmax_kernel":
            check(op, [-arrays[0], *arrays[1:]], 20)
        if op.name == "diagonal_kernel_zoh":  # |z| from 1e-3 to 1
            check(op, [arrays[0] / 8, *arrays[1:]], 20)
        if op.name == "diagonal_kernel_bilinear":  # dt·w below −2
            check(op, [arrays[0] * 16, *arrays[1:]], 20)
