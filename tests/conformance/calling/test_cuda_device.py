"""CUDA functions on a real device, in CuPy and in PyTorch: streams, places, failed kernels.

Without a device every test here is skipped; `test_cupy_streams.py` has a fake one.
"""

import numpy as np
import pytest
from fake_cupy import scan
from frameworks import judged

from refssm.conformance.calling.worker import Worker

pytestmark = pytest.mark.long
ARRAYS = [np.full((2, 3, 2), 0.5, np.float32), np.ones((2, 3, 2), np.float32)]
CHECKS = ("value", "repeat", "stream")
ALWAYS = set(CHECKS)
CYCLES = 200_000_000  # a tenth of a second


@pytest.fixture
def cupy():
    """CuPy, if there is a device."""
    module = pytest.importorskip("cupy", exc_type=ImportError)
    if not module.is_available():
        pytest.skip("cupy is installed, but there is no CUDA device")
    return module


@pytest.fixture
def torch():
    """PyTorch, if there is a device."""
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch is installed, but there is no CUDA device")
    return module


def failed(function, **declared):
    """The checks that a linear scan fails."""
    found = {check: judged("linear_scan", function, check, **declared) for check in CHECKS}
    return {check for check, result in found.items() if result.failed}


SCAN = r"""
extern "C" __global__ void scan(const float* a, const float* b, float* x, long long l,
                                long long n, long long rows) {
    const long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const long long first = row / n * l * n + row % n;
    float state = 0;
    for (long long k = 0; k < l; ++k) {
        state = a[first + k * n] * state + b[first + k * n];
        x[first + k * n] = state;
    }
}
"""


def launched(cupy, a, b):
    """A kernel of one thread a row, on the current stream."""
    a, b = (cupy.ascontiguousarray(v, dtype=np.float32) for v in cupy.broadcast_arrays(a, b))
    x, (l, n) = cupy.empty_like(b), b.shape[-2:]
    rows = b.size // max(l, 1)
    if b.size:
        sizes = (np.int64(l), np.int64(n), np.int64(rows))
        kernel = cupy.RawKernel(SCAN, "scan")
        kernel((-(-rows // 128),), (128,), (a, b, x, *sizes))
    return x


def test_a_cupy_kernel_on_the_current_stream_passes_and_one_on_the_default_stream_does_not(cupy):
    def default(a, b):
        with cupy.cuda.Stream.null:
            return launched(cupy, a, b)

    declared = {"framework": "cupy", "ftz": True}  # CuPy compiles with -ftz=true
    assert failed(lambda a, b: launched(cupy, a, b), **declared) == set()
    assert failed(default, **declared) == {"stream"}


def test_a_cupy_kernel_that_nothing_waits_for_and_a_result_on_the_host_fail_always(cupy):
    def unordered(a, b):
        x, own = cupy.zeros_like(b), cupy.cuda.Stream(non_blocking=True)
        busy = cupy.zeros(1 << 22, np.float32)
        cupy.cuda.get_current_stream().synchronize()
        with own:
            for _ in range(200):
                busy += np.float32(1)
            x[...] = launched(cupy, a, b)
        return x

    assert failed(unordered, framework="cupy") == ALWAYS
    assert failed(lambda a, b: cupy.asnumpy(launched(cupy, a, b)), framework="cupy") == ALWAYS


def test_a_torch_function_is_judged_with_its_streams(torch):
    def default(a, b):
        with torch.cuda.stream(torch.cuda.default_stream()):
            return in_torch(a, b)

    def unordered(a, b):
        own = torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(own):
            torch.cuda._sleep(CYCLES)  # longer than Python needs for the launches that follow
            return in_torch(a, b)

    def in_torch(a, b):
        x = [b[..., 0, :] * (a[..., 0, :] * 0 + 1)]
        for k in range(1, b.shape[-2]):
            x.append(a[..., k, :] * x[-1] + b[..., k, :])
        return torch.stack(x, -2)

    declared = {"framework": "torch", "device": "cuda"}
    assert failed(in_torch, **declared) == set()
    assert failed(default, **declared) == {"stream"}
    assert failed(unordered, **declared) == ALWAYS
    assert failed(lambda a, b: in_torch(a, b).cpu(), **declared) == ALWAYS


ILLEGAL = """
import cupy

from refssm.testing import implements

BAD = cupy.RawKernel(r'extern "C" __global__ void bad(float* x) { x[1LL << 40] = 1; }', "bad")


@implements("linear_scan", framework="cupy")
def bad(a, b):
    x = cupy.empty_like(b)
    BAD((1,), (1,), (x,))
    return x
"""


def test_an_illegal_address_is_told_in_a_sentence_and_the_process_replaced_once(cupy, tmp_path):
    (tmp_path / "bad.py").write_text(ILLEGAL, encoding="utf-8")
    with Worker(str(tmp_path / "bad.py"), timeout=60) as worker:
        seen = [worker.call("linear_scan", ARRAYS, {}) for _ in range(3)]
    assert [outcome.status for outcome in seen] == ["crashed"] * 3
    assert seen[0].message.startswith("launched a kernel that failed: cudaErrorIllegalAddress")
    assert seen[2].message.startswith("not called again: an earlier call launched a kernel")


def test_too_little_memory_is_an_error(cupy):
    def greedy(a, b):
        return scan(a, b) + cupy.zeros(1 << 46, np.uint8)[0]

    result = judged("linear_scan", greedy, "value", framework="cupy")
    assert result.verdict == "error"
    assert result.message.startswith("ran out of the device's memory: ")
