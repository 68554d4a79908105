import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from gpu.numba_cuda import launch
from gpu.numba_cuda.cauchy import cauchy_kernel
from gpu.numba_cuda.field import FIELDS
from gpu.numba_cuda.scan import linear_scan
from gpu.numba_cuda.selective_scan import selective_scan
from gpu.numba_cuda.simulator import ORDERS, threads_in
from numba_tier import KERNELS, OPERATORS, TYPES, calls, drawn, edited, replaced

import refssm
from refssm.cauchy import CAUCHY_KERNEL
from refssm.scan import LINEAR_SCAN
from refssm.testing import check
from refssm_gpu._launching import missing

NAMES = [str(op) for op in OPERATORS]


def parts(name):
    """The operator's function in the Numba tier, and its VJP."""
    module = next(m for op, m in OPERATORS.items() if str(op) == name)
    return getattr(module, name), getattr(module, f"{name}_vjp")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_judge_accepts_every_operator_of_the_numba_tier(name):
    function, vjp = parts(name)
    check(name, function, vjp=vjp, profile="quick")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_the_judge_accepts_every_gradient_of_the_numba_tier(name):
    function, vjp = parts(name)
    check(name, function, vjp=vjp, checks=("gradient",))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_order_of_threads_changes_no_bit(kernel, kind):
    call = calls(kind)[kernel]
    results = []
    for order in ORDERS:
        with threads_in(order):
            results.append([y.tobytes() for y in call()])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("l", [0, 1, 7, 8, 9, 31, 33, 127, 129])
@pytest.mark.parametrize("n", [0, 1, 3, 33])
def test_a_scan_of_whole_numbers_is_exact_at_every_length(l, n):
    a, b = np.sign(drawn("float32", l, n)), drawn("float32", l, n)
    np.testing.assert_array_equal(linear_scan(a, b), refssm.linear_scan(a, b))


@pytest.mark.parametrize("l", [0, 1, 15, 16, 17, 33])
@pytest.mark.parametrize("n", [0, 1, 3, 129])
def test_a_selective_scan_of_whole_numbers_is_exact_at_every_length(l, n):
    u, dt, A = drawn("complex64", 3, l), np.abs(drawn("float32", 3, l)), np.zeros((3, n), "F")
    B, C = drawn("complex64", l, n), drawn("complex64", 3, l, n)
    expected = refssm.selective_scan(u, dt, A, B, C)
    np.testing.assert_array_equal(selective_scan(u, dt, A, B, C), expected)


@pytest.mark.parametrize("l", [0, 1, 31, 33, 129])
@pytest.mark.parametrize("n", [0, 1, 33, 129])
def test_a_cauchy_sum_over_powers_of_two_is_exact_at_every_size(l, n):
    v, z = drawn("float64", n), np.arange(l) % 2 * 2.0
    w = np.ones(n)  # z − w is 1 or −1
    np.testing.assert_array_equal(cauchy_kernel(v, w, z), refssm.cauchy_kernel(v, w, z))


def exact(op, kind):
    """Arguments whose results are whole numbers, exact in any order of sums."""
    if op is LINEAR_SCAN:
        return np.sign(drawn(kind, 37, 5).real).astype(kind), drawn(kind, 2, 37, 5)
    if op is CAUCHY_KERNEL:
        return drawn(kind, 2, 35), np.ones(35, kind), np.full(37, 3, kind)  # z − w = 2
    steps = np.ones((2, 3, 19), np.ones(0, kind).real.dtype)
    B, C = drawn(kind, 2, 1, 19, 5), drawn(kind, 2, 1, 19, 5)
    return drawn(kind, 2, 3, 19), steps, np.zeros((3, 5), kind), B, C


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("role", ["reference", "jit", "gpu"])
@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_whole_numbers_give_the_same_bits_as_every_other_mirror(op, role, kind):
    if role in op.lacks:
        pytest.skip(f"{op} has no mirror in CUDA C++ yet")
    arrays = exact(op, kind)
    function, _ = parts(str(op))
    np.testing.assert_array_equal(function(*arrays), op.implementation(role)(*arrays))


@pytest.mark.long
def test_the_judge_sees_the_carry_of_another_column(monkeypatch):
    edit = replaced(
        "carry = decays[p * columns + place] * carry", "carry = decays[p * columns] * carry"
    )
    with (
        edited(monkeypatch, "linear_scan_forward", edit),
        pytest.raises(AssertionError, match="FAIL"),
    ):
        check("linear_scan", linear_scan, vjp=False, profile="quick", checks=("value", "batch"))


@pytest.mark.long
def test_the_judge_sees_poles_beyond_the_last_tile(monkeypatch):
    edit = replaced("range(smaller(width, n - tile))", "range(width)")
    with edited(monkeypatch, "cauchy_sums", edit), pytest.raises(AssertionError, match="FAIL"):
        check("cauchy_kernel", cauchy_kernel, vjp=False, profile="quick", checks=("value",))


def test_without_a_gpu_a_call_says_in_one_sentence_what_is_missing(monkeypatch):
    monkeypatch.delenv("REFSSM_GPU")
    monkeypatch.setattr(missing, "_lack", lambda: "CuPy is not installed")
    with pytest.raises(missing.NoCard) as caught:
        linear_scan(np.ones((2, 1)), np.ones((2, 1)))
    assert str(caught.value) == "linear_scan runs on a CUDA GPU, and CuPy is not installed"


def test_on_a_card_a_launch_takes_cupys_stream_and_waits_for_none(monkeypatch):
    seen = []

    class Compiled:
        def __getitem__(self, place):
            return lambda *arguments: seen.append((place, arguments))

    class OnCard:
        __cuda_array_interface__ = {}  # noqa: RUF012

    stream = SimpleNamespace(ptr=7)
    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: stream))
    numba = SimpleNamespace(
        external_stream=lambda ptr: f"stream {ptr}", as_cuda_array=lambda x, sync: (x, sync)
    )
    monkeypatch.delenv("REFSSM_GPU")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(launch, "cuda", numba)
    monkeypatch.setattr(launch, "_compiled", lambda kernel, field: Compiled())
    kernel, field, x = KERNELS["cauchy_sums"], FIELDS["float32"], OnCard()
    kernel(field, (3, 2), (128,), x, 5)
    kernel(field, (3, 0), (128,), x, 5)  # nothing to do
    assert seen == [(((3, 2), (128,), "stream 7"), ((x, False), 5))]


def test_sizes_and_types_are_checked():
    with pytest.raises(
        ValueError, match="linear_scan: `b` has l=3, but earlier arguments have l=2"
    ):
        linear_scan(np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(TypeError, match="cauchy_kernel: `v` is a list, wanted a NumPy array"):
        cauchy_kernel([1.0], np.ones(1), np.ones(1))


def test_the_package_does_not_load_numba():
    code = "import sys, refssm_gpu; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
