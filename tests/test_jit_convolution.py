"""Mirrors of convolutions: a few rows at a time, on the threads that Numba may use."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import refssm
from refssm.jit import convolution
from refssm.jit._compiling import threads
from refssm.jit.convolution import whole

BATCHES = {
    "one row": ((), ()),
    "more rows than a step": ((2 * whole.ROWS + 3,), (2 * whole.ROWS + 3,)),
    "one kernel for all": ((3, 19), (19,)),
    "one signal for all": ((1, 5), (4, 1)),
    "a kernel of its own axis": ((3, 1, 7), (2, 7)),
    "no rows": ((0, 3), (3,)),
}


def drawn(u, k, l=21, dtype="f8"):
    draw = np.random.default_rng(0).standard_normal
    batch = np.broadcast_shapes(u, k)
    return [draw((*shape, l)).astype(dtype) for shape in (batch, u, k)]


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
def test_every_row_is_convolved_with_its_own_kernel(batches, dtype):
    dy, u, k = drawn(*batches, dtype=dtype)
    pairs = [
        (convolution.causal_convolution(u, k), refssm.causal_convolution_direct(u, k)),
        *zip(
            convolution.causal_convolution_vjp(dy, u, k),
            refssm.causal_convolution_direct_vjp(dy, u, k),
            strict=True,
        ),
    ]
    for mine, expected in pairs:
        assert mine.shape == expected.shape
        assert mine.dtype == expected.dtype
        norms = np.linalg.norm(u) * np.linalg.norm(k) + np.linalg.norm(dy) ** 2
        assert np.abs(mine - expected).max(initial=0) <= norms * np.finfo(dtype).eps


def test_a_window_that_is_left_out_is_seen(monkeypatch):
    """The check itself: the last rows are forgotten."""
    windows = whole._windows
    monkeypatch.setattr(whole, "_windows", lambda batch: windows(batch)[:-1])
    monkeypatch.setattr(np, "empty", np.zeros)
    with pytest.raises(AssertionError):
        test_every_row_is_convolved_with_its_own_kernel(BATCHES["more rows than a step"], "f8")


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    dy, u, k = drawn((3, 19), (19,))
    results = []
    for count in (1, 4):
        monkeypatch.setattr(threads, "threads", lambda count=count: count)
        y = convolution.causal_convolution(u, k)
        results.append([y, *convolution.causal_convolution_vjp(dy, u, k)])
    for one, four in zip(*results, strict=True):
        np.testing.assert_array_equal(one, four)


def test_nan_stays_in_its_row():
    _, u, k = drawn((9,), (9,))
    u[4, 3] = np.nan
    assert np.isnan(convolution.causal_convolution(u, k)).any(-1).tolist() == [
        i == 4 for i in range(9)
    ]


THREADS_OF_A_WORKER = """
import json
from joblib import Parallel, delayed, parallel_config

def seen(_):
    import threading
    import numba
    import numpy as np
    from scipy import fft
    from refssm.jit.convolution import causal_convolution, short_convolution
    from refssm.jit.scan import linear_scan
    workers = []
    for name in ("rfft", "irfft"):
        transform = getattr(fft, name)
        def counted(*given, transform=transform, workers=None, **named):
            counted_workers.append(workers)
            return transform(*given, workers=workers, **named)
        counted_workers = workers
        setattr(fft, name, counted)
    u = np.ones((64, 4096), "f4")
    causal_convolution(u, u)
    short_convolution(u, u[:, :4])
    linear_scan(u.reshape(8, 512, 64), u.reshape(8, 512, 64))
    ours = [t.name for t in threading.enumerate() if t.name.startswith("refssm")]
    return numba.config.NUMBA_NUM_THREADS, len(ours), sorted(set(map(str, workers)))

with parallel_config("loky", inner_max_num_threads=1):
    print(json.dumps(Parallel(n_jobs=2)(delayed(seen)(i) for i in range(2))))
"""


@pytest.mark.long
def test_workers_of_joblib_start_no_more_threads_than_joblib_allows(tmp_path):
    """joblib tells each process its share of the cores by NUMBA_NUM_THREADS: here one."""
    program = tmp_path / "program.py"
    program.write_text(THREADS_OF_A_WORKER, encoding="utf-8")
    environment = {name: x for name, x in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    command = [sys.executable, str(program)]
    told = subprocess.run(
        command, env=environment, capture_output=True, check=True, text=True, encoding="utf-8"
    )
    assert json.loads(told.stdout) == [[1, 0, ["1"]]] * 2


@pytest.mark.parametrize("dtype", ["f4", "c16"])
@pytest.mark.parametrize("t", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("l", [1, 6, 40, 1024, 1027, 1031, 3100])
def test_gradients_of_short_convolutions_are_exact_for_whole_numbers(l, t, dtype):
    """Sums of products that are exact in any order; a tile has 1024 steps, a group four taps."""
    rng = np.random.default_rng(l + t)

    def whole(size):
        x = rng.integers(-9, 9, size)
        return (x + 1j * rng.integers(-9, 9, size) if dtype.startswith("c") else x).astype(dtype)

    dy, u, k = whole(l), whole(l), whole(t)
    du, dk = convolution.short_convolution_vjp(dy, u, k)
    expected, taps = np.zeros(l, dtype), np.zeros(t, dtype)
    for j in range(min(l, t)):
        expected[: l - j] += k[j].conj() * dy[j:]
        taps[j] = u[: l - j].conj() @ dy[j:]
    np.testing.assert_array_equal(du, expected)
    np.testing.assert_array_equal(dk, taps)
    y = np.convolve(u, k)[:l] if t else np.zeros(l, dtype)
    np.testing.assert_array_equal(convolution.short_convolution(u, k), y)
