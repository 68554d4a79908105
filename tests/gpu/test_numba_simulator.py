import inspect

import numpy as np
import pytest
from gpu.numba_cuda import cauchy
from gpu.numba_cuda.field import FIELDS, complex64, cuda, float32, float64, int64
from gpu.numba_cuda.simulated_memory import KernelBug
from gpu.numba_cuda.simulator import ORDERS, simulate, threads_in
from numba import int32
from numba_tier import KERNELS, calls, edited, missing, replaced

BARRIERS = [
    (name, number)
    for name, kernel in KERNELS.items()
    for number in range(inspect.getsource(kernel.make).count("cuda.syncthreads()"))
]
EIGHT = np.zeros(8, np.float32)


def run(kernel, *arrays, threads=8, grid=1):
    """The arrays after a launch."""
    simulate(kernel, (grid,), (threads,), arrays, name="kernel")
    return arrays


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kernel", "number"), BARRIERS)
def test_every_missing_barrier_is_seen_in_every_order(monkeypatch, kernel, number, order):
    call = calls("float32")[kernel]
    with (
        edited(monkeypatch, kernel, missing(number)),
        threads_in(order),
        pytest.raises(KernelBug, match="no barrier"),
    ):
        call()


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("linear_scan_forward", "end = smaller(start + STEPS, size)", "end = start + STEPS"),
        ("linear_scan_forward", "if row < rows:", "if row <= rows:"),
        ("linear_scan_adjoint", "if t > 0 else E(1)", "if t >= 0 else E(1)"),
        ("linear_scan_adjoint", "if k > 0 else E(0)", "if k >= 0 else E(0)"),
        ("cauchy_sums", "if tile + t < n:", "if tile + t <= n:"),
        ("cauchy_sums", "if l < k.shape[1]:", "if l <= k.shape[1]:"),
        ("cauchy_node_gradients", "if tile + t < n:", "if True:"),
        ("cauchy_pole_gradients", "if tile + t < l:", "if tile + t <= l:"),
        ("selective_scan_forward", "end = smaller(STEPS, l - tile)", "end = STEPS"),
        ("selective_scan_forward", "if i < n:", "if i <= n:"),
    ],
)
def test_a_step_beyond_the_tail_is_seen(monkeypatch, kernel, old, new):
    call = calls("float32")[kernel]
    with (
        edited(monkeypatch, kernel, replaced(old, new)),
        pytest.raises(KernelBug, match="is outside of an array of shape"),
    ):
        call()


@pytest.mark.parametrize("kind", ["float32", "complex64"])
@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [
        ("linear_scan_forward", "E(0)", "0.0"),
        ("linear_scan_adjoint", "decay, state = E(1)", "decay, state = 1.0"),
        ("cauchy_sums", "total, n = E(1), E(0)", "total, n = E(1), 0.0"),
        ("cauchy_node_gradients", "quotient(E(1),", "2 * quotient(E(1),"),
        ("cauchy_pole_gradients", "first += ", "first += 1.0 * "),
        ("selective_scan_forward", "step * value * B", "0.5 * step * value * B"),
    ],
)
def test_a_literal_that_widens_is_seen(monkeypatch, kernel, old, new, kind):
    call = calls(kind)[kernel]
    with (
        edited(monkeypatch, kernel, replaced(old, new)),
        pytest.raises(KernelBug, match=r"in double precision|stores a float64"),
    ):
        call()


def test_double_precision_may_have_literals(monkeypatch):
    call = calls("float64")["cauchy_sums"]
    expected = call()
    with edited(
        monkeypatch, "cauchy_sums", replaced("total, n = E(1), E(0)", "total, n = E(1), 0.0")
    ):
        np.testing.assert_array_equal(call(), expected)


def test_an_atomic_on_complex_numbers_is_refused():
    def kernel(x):
        cuda.atomic.add(x, 0, complex64(1))

    with pytest.raises(KernelBug, match="atomics on complex numbers do not compile"):
        run(kernel, np.zeros(1, np.complex64))


def test_atomics_run_in_the_order_of_threads():
    def kernel(x, y):
        cuda.atomic.add(y, 0, x[cuda.threadIdx.x])

    x, sums = np.array([1e8, 1, -1e8, 1], np.float32), []
    for order in ("first", "last"):
        with threads_in(order):
            sums.append(run(kernel, x, np.zeros(1, np.float32), threads=4)[1][0])
    assert sums == [1, 0]  # 1e8 + 1 is rounded to 1e8


def test_a_negative_index_is_seen():
    def kernel(x):
        x[cuda.threadIdx.x - 1] = float32(1)

    with pytest.raises(
        KernelBug, match=r"kernel, block \(0, 0, 0\), thread \(0, 0, 0\), line \d+:"
    ):
        run(kernel, EIGHT)


def test_threads_at_different_barriers_are_seen():
    def kernel(x):
        if cuda.threadIdx.x < 4:
            cuda.syncthreads()
        else:
            cuda.syncthreads()

    with pytest.raises(KernelBug, match="threads wait at different barriers"):
        run(kernel, EIGHT)


def test_a_thread_that_ends_before_a_barrier_is_seen():
    def kernel(x):
        if cuda.threadIdx.x < x.shape[0]:
            cuda.syncthreads()

    with pytest.raises(KernelBug, match=r"thread \(8, 0, 0\) has ended, others wait at line"):
        run(kernel, EIGHT, threads=9)


def test_shared_memory_is_nan_until_it_is_written():
    def kernel(x):
        shared = cuda.shared.array(8, float32)
        x[cuda.threadIdx.x] = shared[cuda.threadIdx.x]

    assert np.isnan(run(kernel, EIGHT.copy())[0]).all()


def test_too_much_shared_memory_is_seen():
    def kernel(x):
        shared = cuda.shared.array(6145, float64)
        shared[0] = x[0]

    with pytest.raises(KernelBug, match="49160 bytes of shared memory, a block gets 49152"):
        run(kernel, np.zeros(1), threads=1)


@pytest.mark.parametrize("order", ORDERS)
def test_two_threads_that_write_one_entry_are_seen(order):
    def kernel(x):
        x[0] = x[cuda.threadIdx.x]

    with threads_in(order), pytest.raises(KernelBug, match="no barrier"):
        run(kernel, EIGHT)


def test_two_blocks_that_meet_in_one_entry_are_seen():
    def written(x):
        x[0] = float32(1)

    def read(x, y):
        y[int64(cuda.blockIdx.x)] = x[0]
        x[int64(cuda.blockIdx.x)] = float32(1)

    with pytest.raises(KernelBug, match="which another block wrote"):
        run(written, EIGHT.copy(), threads=1, grid=2)
    with pytest.raises(KernelBug, match="wrote"):
        run(read, EIGHT.copy(), EIGHT.copy(), threads=1, grid=2)


def test_what_the_simulator_does_not_know_is_refused():
    def warps(x):
        cuda.syncwarp()

    def smallest(x):
        x[0] = min(x[0], x[1])

    with pytest.raises(KernelBug, match=r"does not know cuda\.syncwarp"):
        run(warps, EIGHT)
    with pytest.raises(NameError, match="min"):
        run(smallest, EIGHT, threads=1)


def test_offsets_of_32_bits_are_refused(monkeypatch):
    call = calls("float32")["cauchy_sums"]
    monkeypatch.setattr(cauchy, "int64", int32)
    with pytest.raises(KernelBug, match="int32 in a kernel: offsets need 64 bits"):
        call()


def test_a_barrier_in_a_function_that_a_kernel_calls_is_refused():
    def meet(x):
        cuda.syncthreads()

    def kernel(x):
        meet(x)

    with pytest.raises(KernelBug, match="a barrier in a function that a kernel calls"):
        run(kernel, EIGHT)


def test_the_orders_are_what_their_names_say():
    def kernel(x, place):
        x[cuda.threadIdx.x] = cuda.atomic.add(place, 0, int64(1))

    seen = {}
    for order in ORDERS:
        with threads_in(order):
            seen[order] = run(kernel, np.zeros(64, int), np.zeros(1, int), threads=64)[0].tolist()
    assert seen["first"] == [*range(64)]
    assert seen["last"] == [*range(63, -1, -1)]
    assert sorted(seen["shuffled"]) == [*range(64)]
    assert {i // 32 for i in seen["shuffled"][:32]} != {0, 1}  # warps stay together
    assert seen["shuffled"] not in (seen["first"], seen["last"])
    with pytest.raises(ValueError, match="order: wanted one of first, last, shuffled, got 'other'"):
        threads_in("other").__enter__()


@pytest.mark.parametrize("field", FIELDS.values(), ids=lambda field: field.name)
def test_elements_are_what_numba_says(field):
    assert np.dtype(field.name).itemsize == field.element.bitwidth // 8
