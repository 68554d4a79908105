"""Launches of the host build: threads, orders, arguments, knobs, counts."""

import mmap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gpu.hosted import PLANTED, kernel

from refssm_gpu._host import build
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.kernel import Kernel

N = np.int64(64)
NORESERVE = 0x4000  # Linux; Python names it from 3.13 on


def test_every_thread_knows_its_place():
    grid, block = (3, 2, 2), 40
    out = np.full((12 * 40, 8), -1, np.int32)
    kernel("who", "int", block=block)(grid, out)
    for number, row in enumerate(out):
        b = number // block
        place = [number % block, b % 3, b // 3 % 2, b // 6, block, *grid]
        assert row.tolist() == place


@pytest.mark.parametrize("width", [32, 8, 1])
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("E", ["float32", "complex128", "float16", "long long"])
def test_shuffles_are_those_of_cuda(E, kind, width):
    n, lanes = 3, np.arange(64)
    dtype = np.dtype(np.int64 if E == "long long" else E)
    x = (np.arange(128) * 3 + 1).astype(dtype)
    out = np.zeros_like(x)
    kernel("exchange", E, kind)(2, x, out, np.int32(n), np.int32(width))
    first = lanes // width * width
    source = [first + n % width, lanes - n, lanes + n, lanes ^ n][kind]
    # an exclusive or may reach back into earlier groups of lanes, by CUDA's rules
    inside = ((source >= first) | (kind == 3)) & (source < first + width)
    source = np.where(inside, source, lanes)  # its own value
    np.testing.assert_array_equal(out.reshape(2, 64), x.reshape(2, 64)[:, source])


def test_votes_see_every_lane_of_the_warp():
    x = np.zeros(32, np.int64)
    x[[0, 5, 31]] = 1, 7, 9
    out = np.zeros(32, np.int64)
    kernel("votes", "long long", block=32)(1, x, out)
    assert set(out.tolist()) == {(1 | 1 << 5 | 1 << 31) + 1000}


def test_the_order_of_threads_and_blocks_is_the_settings_and_repeats():
    def started(order):
        counter, out = np.zeros(1, np.int32), np.zeros((4, 96), np.int32)
        with settings(order=order):
            kernel("started", "int", block=96)(4, counter, out)
        assert sorted(out.ravel()) == list(range(384))
        return out.ravel().tolist()

    assert started(0) == list(range(384))
    assert started(1) == list(range(384))[::-1]
    seeds = [started(seed) for seed in (2, 3, 4)]
    assert seeds == [started(seed) for seed in (2, 3, 4)]
    assert len({tuple(s) for s in [*seeds, started(0), started(1)]}) == 5


def test_an_atomic_sum_of_floats_loses_no_term():
    counter, out = np.zeros(1, np.float32), np.zeros(192, np.float32)
    kernel("started", "float")(3, counter, out)
    assert counter[0] == 192
    assert sorted(out) == list(range(192))


@pytest.mark.parametrize("block", [1, 31, 33, 1000, 1024])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_block_may_have_any_size(block, order):
    counter, out = np.zeros(1, np.int32), np.zeros((5, block), np.int32)
    with settings(order=order):
        kernel("started", "int", block=block)(5, counter, out)
    assert sorted(out.ravel()) == list(range(5 * block))


def test_single_precision_flushes_subnormal_numbers_and_double_does_not():
    for E, flushed in (("float32", True), ("float64", False)):
        tiny = np.finfo(E).tiny
        out = np.zeros(64, E)
        kernel("half", E)(1, np.full(64, tiny, E), out)
        assert (out == (0 if flushed else tiny / 2)).all()
        assert (tiny / 2 > 0).all()  # and NumPy's own arithmetic is as before
    inside = Kernel(str(PLANTED / "features.cuh"), "half", (("float32",),), 64, 64, True)
    inside(("float32",), (1,), np.full(64, np.finfo("f").tiny, "f"), out := np.zeros(64, "f"))
    assert (out > 0).all()


X, OUT = np.ones(64, np.float32), np.zeros(64, np.float32)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


ARRAY = "wanted an array of float32, got "
SCALAR = "wanted the scalar numpy.int64, got "


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((X, OUT), "wanted 3 arguments, got 2"),
        ((X.astype(float), OUT, N), f"argument 1 of 3: {ARRAY}an array of float64"),
        ((X, OUT, 64), f"argument 3 of 3: {SCALAR}64 of type int"),
        ((X, OUT, np.int32(64)), f"argument 3 of 3: {SCALAR}the scalar numpy.int32"),
        ((X, OUT, X[:1]), f"argument 3 of 3: {SCALAR}an array of float32"),
        ((X, OUT, None), f"argument 3 of 3: {SCALAR}None"),
        ((X[::2], OUT, N), f"argument 1 of 3: {ARRAY}an array that is not contiguous"),
        ((X, read_only(OUT), N), f"argument 2 of 3: {ARRAY}a read-only array"),
        ((X.tolist(), OUT, N), f"argument 1 of 3: {ARRAY}[1.0"),
        ((np.float32(1), OUT, N), f"argument 1 of 3: {ARRAY}the scalar numpy.float32"),
    ],
)
def test_a_wrong_argument_is_named_with_what_was_wanted(arguments, said):
    with pytest.raises(TypeError) as caught:
        kernel("twice", "float32")(1, *arguments)
    assert str(caught.value).startswith(f"twice<float32>: {said}")


def test_what_a_kernel_only_reads_may_be_read_only():
    kernel("twice", "float32")(1, read_only(X), out := OUT.copy(), N)
    assert (out == 2).all()


def test_an_array_between_two_places_of_its_type_is_refused():
    raw = np.zeros(65 * 4, np.uint8)
    shifted = raw[2:258].view(np.float32)
    with pytest.raises(TypeError, match="at an address that is not a multiple of 4"):
        kernel("twice", "float32")(1, shifted, OUT.copy(), N)


def test_bfloat16_arrays_are_those_of_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes").bfloat16
    x = np.arange(64).astype(bfloat16)
    kernel("twice", "bfloat16")(1, x, out := np.zeros_like(x), N)
    np.testing.assert_array_equal(out, (2 * np.arange(64)).astype(bfloat16))
    with pytest.raises(TypeError, match="wanted an array of bfloat16, got an array of float16"):
        kernel("twice", "bfloat16")(1, x.astype(np.float16), out, N)


def test_a_record_is_passed_by_value():
    fields = np.dtype([("n", np.int64), ("step", np.int32), ("shift", np.int32)])
    record = np.array([(10, 3, -2)], fields)
    out = np.full(12, -1, np.float64)
    kernel("of_record", "double")(1, out, record)
    assert out.tolist() == [*(3.0 * np.arange(10) - 2), -1, -1]
    with pytest.raises(TypeError, match="wanted one record: a struct of 16 bytes, got a record of"):
        kernel("of_record", "double")(1, out, np.zeros(1, fields.descr[:2]))


def test_a_grid_or_block_that_no_card_takes_is_refused():
    for grid in ((1, 70000), (1, 1, 65536), (2**31,), (1, 1, 1, 1)):
        with pytest.raises(ValueError, match=r"twice<float32>: a grid of"):
            kernel("twice", "float32")(grid, X, OUT.copy(), N)
    with pytest.raises(ValueError, match="1025 threads a block; wanted 1 to 1024"):
        kernel("twice", "float32", block=1025)(1, X, OUT.copy(), N)
    with pytest.raises(ValueError, match="bytes of shared memory; wanted at most 232448"):
        kernel("twice", "float32")(1, X, OUT.copy(), N, shared=2**18)


def test_more_threads_than_the_launch_bounds_are_refused(tmp_path):
    bounds = "#pragma once\nconstexpr int OTHER = 7, BOUND = 32;\n"
    (tmp_path / "bounds.cuh").write_text(bounds, encoding="utf-8")
    for text in ("BOUND", "32, 4"):
        head = '#include "bounds.cuh"\n#include "common/number.cuh"\ntemplate <class E> __global__ '
        body = f"void __launch_bounds__({text})\n bound(E* out) {{ out[threadIdx.x] = E(1); }}\n"
        path = tmp_path / f"of_{text[:2]}.cuh"
        path.write_text(head + body, encoding="utf-8")
        out = np.zeros(64, np.float32)
        Kernel(str(path), "bound", (("float",),), 32, 32)(("float",), (1,), out)
        assert out.sum() == 32
        with pytest.raises(
            ValueError, match=r"bound<float>: 64 threads; its __launch_bounds__ say 32"
        ):
            Kernel(str(path), "bound", (("float",),), 64, 32)(("float",), (1,), out)


@pytest.fixture
def wide():
    """An array of 2³³ + 128 numbers: 34 GB of addresses, a page or two of memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
    room = mmap.mmap(-1, (2**33 + 128) * 4, flags=flags)
    return np.frombuffer(room, np.float32)


def test_only_some_blocks_of_a_grid_that_is_too_large_to_run(wide):
    l, block = np.int64(2**27), (64, 0, 0)
    with settings(only=(block,)) as now:
        kernel("far", "float32", 0)(65, wide, l)
    (count,) = now.counts
    assert (count.blocks, count.threads) == (1, 64)
    assert wide[0] == 0
    assert (wide[2**33 : 2**33 + 64] == 3).all()


def test_a_block_outside_of_the_grid_is_refused():
    with settings(only=((0, 1, 0),)), pytest.raises(ValueError, match=r"outside of the grid \(1,"):
        kernel("twice", "float32")(1, X, OUT.copy(), N)


def test_what_a_launch_did_is_counted():
    with settings() as now:
        kernel("rules", 0)(3, np.zeros(192, "f"))
        kernel("exchange", "float32", 1)(1, X, OUT.copy(), np.int32(1), np.int32(32))
        kernel("first_sight", "float32")(1, np.zeros(128, "f"), shared=300)
    rules, exchange, shared = now.counts
    assert (rules.kernel, rules.blocks, rules.threads) == ("rules<0>", 3, 192)
    assert rules.barriers == 192
    assert exchange.warp_calls == 64
    assert shared.shared == 64 * 4 + 300


def test_a_new_function_of_a_warp_is_made_of_meet():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 9, (2, 4, 4)).astype(np.float64)
    kernel("product", "double", block=32)(1, a, b, c := np.zeros((4, 4)))
    np.testing.assert_array_equal(c, a @ b)


def test_launches_of_several_threads_of_python_do_not_mix():
    def doubled(k):
        x = np.full(64 * 50, k, np.float32)
        kernel("twice", "float32")(50, x, out := np.zeros_like(x), np.int64(x.size))
        return (out == 2 * k).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(doubled, range(40)))


def test_an_empty_grid_runs_nothing():
    kernel("twice", "float32")(0, X, out := OUT.copy(), N)
    assert not out.any()


def written(tmp_path, body, name="made.cuh"):
    text = (
        '#include "common/number.cuh"\ntemplate <class E> __global__ void made(E* out) {\n' + body
    )
    (tmp_path / name).write_text(text + "\n}\n", encoding="utf-8")
    return Kernel(str(tmp_path / name), "made", (("float",),), 32, 32)


def test_a_changed_kernel_is_compiled_again(tmp_path):
    out = np.zeros(32, np.float32)
    for value in (1, 2):
        written(tmp_path, f"out[threadIdx.x] = {value};")(("float",), (1,), out)
        assert (out == value).all()


def test_a_changed_header_of_a_kernel_is_seen(tmp_path):
    out = np.zeros(32, np.float32)
    for value in (1, 2):
        (tmp_path / "value.cuh").write_text(f"#define VALUE {value}\n", encoding="utf-8")
        made = written(tmp_path, "out[threadIdx.x] = VALUE;")
        text = (tmp_path / "made.cuh").read_text(encoding="utf-8")
        (tmp_path / "made.cuh").write_text('#include "value.cuh"\n' + text, encoding="utf-8")
        made(("float",), (1,), out)
        assert (out == value).all()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("int unused = 3;", "unused variable"),
        ("if (threadIdx.x < -1) out[0] = 1;", "signed"),
        ("out[0] = missing;", "'missing' was not declared"),
        ("__shared__ float tile[3]; out[0] = tile[0];", "__shared__"),
    ],
)
def test_what_the_compiler_refuses_or_warns_of_is_an_error_with_its_words(tmp_path, body, said):
    with pytest.raises(build.CompileError, match=r"made<float>: the C\+\+ compiler") as caught:
        written(tmp_path, body)(("float",), (1,), np.zeros(32, np.float32))
    assert said in str(caught.value)


def test_a_missing_compiler_is_one_sentence_that_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(build.NoCompiler, match=r"needs g\+\+ or clang\+\+: install one \(Debian"):
        build.compiler.__wrapped__()
