"""What only a card can show: memory, streams, devices, and arrays of more than 2^31 numbers.

Everything here skips without a card; nothing of it has run on the host build.
"""

# pyright: reportMissingImports=false
import numpy as np
import pytest
from card import limited, needs_card, needs_memory, returns_early
from kernel_judging import MIRRORED
from launching import ragged
from offsets import FACTS, FAR
from on_target import given, taken

import refssm
from refssm.conformance.checks.checks import types_of
from refssm.scan import LINEAR_SCAN
from refssm_gpu.convolution import circular_convolution
from refssm_gpu.hope import hope_kernel_aliased
from refssm_gpu.scan import linear_scan, linear_scan_vjp

pytestmark = [needs_card, pytest.mark.long]
MIB = 2**20


@pytest.fixture
def cupy():
    """CuPy; each test begins with an empty pool."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    return cupy


def called(op, vjp=False):
    """A call of an operator's mirror, or of its gradient, with its arguments on the card."""
    case = ragged(op, types_of(op)[0])[-1]
    arrays = given(*case.arrays)
    if not vjp:
        return lambda: op.implementation("gpu")(*arrays, **case.statics)
    shapes = op.output_shapes(*case.arrays, **case.statics)
    kinds = op.output_types(*case.arrays)
    ones = given(*(np.ones(s, k) for s, k in zip(shapes, kinds, strict=True)))
    return lambda: op.vjp("gpu")(*ones, *arrays, **case.statics)


CALLS = [(op, vjp) for op in MIRRORED for vjp in (False, True) if op.differentiable or not vjp]


# ---- streams


@pytest.mark.parametrize(("op", "vjp"), CALLS, ids=str)
def test_a_call_returns_while_its_stream_is_busy(op, vjp):
    assert returns_early(called(op, vjp))


def test_a_call_that_waits_is_seen_to_wait(cupy):
    """The planted mistakes: a synchronisation, and a number that is read back."""

    def waits():
        y = linear_scan(a, b)
        cupy.cuda.get_current_stream().synchronize()
        return y

    a, b = given(*np.full((2, 64, 8), 0.5, np.float32))
    assert returns_early(lambda: linear_scan(a, b))
    assert not returns_early(waits)
    assert not returns_early(lambda: float(linear_scan(a, b)[-1, 0]))


def test_work_is_done_in_the_order_of_a_stream_that_is_not_the_default(cupy):
    b = cupy.full((300, 64), cupy.nan, cupy.float32)
    busy, a = cupy.zeros(2**26, cupy.float32), cupy.ones((300, 64), cupy.float32)
    linear_scan(a, b)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(100):
            busy += cupy.float32(1)
        b[...] = cupy.float32(1)
        x = linear_scan(a, b)
        b[...] = cupy.nan  # too late for the scan
        stream.synchronize()
    assert np.array_equal(x.get()[:, 0], np.arange(1, 301))


# ---- transforms


@pytest.mark.parametrize("l", [39, 65, 257])
def test_nan_of_one_row_does_not_reach_another_in_transforms_of_an_odd_length(l):
    """cuFFT mixes rows of these lengths: docs/findings.md."""
    u = np.ones((2, l), np.float32)
    u[0, 0] = np.nan
    y = taken(circular_convolution(*given(u, np.ones(l, np.float32))))
    assert np.isnan(y[0]).all()
    assert np.isfinite(y[1]).all()
    h = np.full((2, 5), 0.5, np.float32)
    h[0, 0] = np.nan
    k = taken(hope_kernel_aliased(*given(h, np.float32(0.5)), l=l))
    assert np.isfinite(k[1]).all()


# ---- memory and devices


def test_too_little_memory_is_one_sentence_and_gives_everything_back(cupy):
    with limited(32 * MIB) as pool:
        a = cupy.ones((16, 1, 1024, 64), cupy.float32)
        b = cupy.ones((1, 16, 1024, 64), cupy.float32)  # 4 MiB each, and an output of 64
        before = pool.used_bytes()
        with pytest.raises(MemoryError) as error:
            linear_scan(a, b)
        assert pool.used_bytes() == before
        del a, b
    with limited(160 * MIB) as pool:
        a = cupy.ones((16, 1, 1024, 64), cupy.float32)
        b = cupy.ones((1, 16, 1024, 64), cupy.float32)
        dx = cupy.ones((16, 16, 1024, 64), cupy.float32)  # states, da and db have its size
        before = pool.used_bytes()
        with pytest.raises(MemoryError):
            linear_scan_vjp(dx, a, b)
        assert pool.used_bytes() == before
        del a, b, dx
    text = str(error.value)
    assert text.startswith("linear_scan: Out of memory allocating ")
    assert " free of " in text
    assert "\n" not in text


def test_wrong_arguments_leave_nothing_on_the_card(cupy):
    with limited(96 * MIB) as pool:
        a = cupy.ones((1024, 64), cupy.float32)
        before = pool.used_bytes()
        with pytest.raises(TypeError, match=r"is a numpy\.ndarray, wanted a CuPy array"):
            linear_scan(a, np.ones((1024, 64), np.float32))
        with pytest.raises(ValueError, match="`b` has"):
            linear_scan(a, cupy.ones((1023, 64), cupy.float32))
        assert pool.used_bytes() == before


def test_a_call_leaves_its_outputs_and_nothing_else(cupy):
    with limited(96 * MIB) as pool:
        a, b = cupy.full((2, 1024, 512), 0.5, cupy.float32)
        before = pool.used_bytes()
        x = linear_scan(a, b)
        assert pool.used_bytes() == before + x.nbytes
        gradients = linear_scan_vjp(x, a, b)
        assert pool.used_bytes() == before + x.nbytes + sum(g.nbytes for g in gradients)


def test_arrays_of_a_second_card_stay_there_and_are_not_mixed(cupy):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one card here; this test wants two")
    with cupy.cuda.Device(1):
        a, b = cupy.full((2, 64, 8), 0.5, cupy.float32)
    x = linear_scan(a, b)  # the first card is the current one
    assert x.device.id == 1
    assert cupy.cuda.Device().id == 0
    assert np.array_equal(x.get(), refssm.linear_scan(a.get(), b.get()))
    with pytest.raises(ValueError, match="`b` is on cuda:1, but `a` is on cuda:0"):
        linear_scan(cupy.ones((64, 8), cupy.float32), b)


# ---- equal bits, and large sizes


def test_twenty_calls_over_pieces_of_time_give_equal_bits(cupy):
    r = np.random.default_rng(1)
    a, b = given(*(r.uniform(-1, 1, (2**17, 3)).astype(np.float32) for _ in range(2)))
    x = linear_scan(a, b)
    first = taken((x, *linear_scan_vjp(x, a, b)))
    for _ in range(19):
        again = taken((linear_scan(a, b), *linear_scan_vjp(x, a, b)))
        assert all(np.array_equal(p, q) for p, q in zip(first, again, strict=True))


def test_a_scan_of_whole_numbers_is_exact_at_the_size_of_papers(cupy):
    r = np.random.default_rng(2)
    a, b = (r.integers(-1, 2, (8, 4096, 256)).astype(np.float32) for _ in range(2))
    assert np.array_equal(taken(linear_scan(*given(a, b))), LINEAR_SCAN.reference(a, b))


def test_the_numba_tier_agrees_on_the_card(cupy):
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba finds no card, or not the compiler NVVM")
    from gpu.numba_cuda.scan import linear_scan as second

    r = np.random.default_rng(3)
    a, b = given(*(r.integers(-1, 2, (3, 300, 20)).astype(np.float32) for _ in range(2)))
    try:
        found = taken(second(a, b))
    except AttributeError as error:  # docs/findings.md
        if "row_stack" not in str(error):
            raise
        pytest.skip(f"numba-cuda compiles nothing with NumPy {np.__version__}: {error}")
    assert np.array_equal(found, taken(linear_scan(a, b)))


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
def test_offsets_are_64_bits_wide(cupy, fact):
    needs_memory(FACTS[fact])
    assert 3 * FAR**2 > 2**31
    assert fact(cupy, FAR)
