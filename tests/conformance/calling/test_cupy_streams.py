"""What goes wrong on a CUDA device besides numbers: streams, devices, failed kernels, memory.

The fake CuPy of `fake_cupy` stands for the device; `test_cuda_device.py` has a real one.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_cupy import (
    ILLEGAL,
    Array,
    CUDARuntimeError,
    Device,
    OutOfMemoryError,
    Pool,
    Stream,
    current,
    double,
    reset,
    scan,
)
from frameworks import called, judged

from refssm.conformance.calling.adapters import cuda
from refssm.conformance.calling.worker import Worker

MODULE = "refssm.conformance.calling.adapters.cupy_arrays"
ARRAYS = [np.full((2, 3, 2), 0.5, np.float32), np.ones((2, 3, 2), np.float32)]


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    """The fake with two devices."""
    module = double(2)
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(cuda, "BUSY", 4)
    monkeypatch.setattr(cuda, "ROUNDS", 2)
    monkeypatch.delenv("CUPY_TF32", raising=False)
    reset()
    before = sys.modules.pop(MODULE, None)
    yield module
    reset()
    sys.modules.pop(MODULE, None)
    if before is not None:
        sys.modules[MODULE] = before


def verdict(function, check="value", **declared):
    """The result of one check of a linear scan of CuPy arrays."""
    return judged("linear_scan", function, check, framework="cupy", **declared)


def on_stream_of_its_own(a, b, *, waits):
    """Launches on another stream; a right function lets the current stream wait."""
    own, x = Stream(non_blocking=True), (b * 0).view(Array)
    here = current()
    if waits:
        here.synchronize()

    def kernel():
        x.view(np.ndarray)[...] = scan(a.view(np.ndarray), b.view(np.ndarray))

    own.launch(kernel)
    if waits:
        here.launch(own.synchronize)  # as here.wait_event(own.record())
    return x


UNFINISHED = (
    "`x` is not finished when the call returns: it is computed on a stream that the caller's "
    "current stream does not wait for"
)


def test_a_result_of_another_stream_is_refused_unless_the_current_one_waits_for_it():
    result = verdict(lambda a, b: on_stream_of_its_own(a, b, waits=False))
    assert (result.verdict, result.message) == ("wrong", UNFINISHED)
    for check in ("value", "stream"):
        result = verdict(lambda a, b: on_stream_of_its_own(a, b, waits=True), check)
        assert result.verdict == "pass", result.message


def test_a_result_of_another_stream_is_refused_slice_by_slice_too():
    def one(a, b):
        assert a.ndim == 2
        return on_stream_of_its_own(a, b, waits=False)

    outcome = called(one, ARRAYS, framework="cupy", sliced=True)
    assert (outcome.status, outcome.message) == ("malformed", UNFINISHED)


def on_the_default_stream(a, b):
    """Launches on the default stream, whichever is current, as `kernel<<<grid, block>>>` does."""
    with Stream.null:
        return scan(a, b)


def test_a_function_of_the_default_stream_fails_the_check_of_streams_and_no_other():
    assert verdict(on_the_default_stream).verdict == "pass"
    result = verdict(on_the_default_stream, "stream")
    assert result.verdict == "wrong"
    assert result.message.startswith(
        "wrong under another current stream than the default one: the function does not launch on "
        "the current stream, or does not wait for it; "
    )


def test_a_function_of_the_current_stream_passes_the_check_of_streams():
    assert verdict(scan, "stream").verdict == "pass"

    def waiting(a, b):
        current().synchronize()
        return on_the_default_stream(a, b)

    assert verdict(waiting, "stream").verdict == "pass"


def test_the_check_of_streams_needs_a_function_that_is_right_on_the_default_stream():
    result = verdict(lambda a, b: scan(a, b) * 2, "stream")
    assert result.verdict == "wrong"
    assert "another current stream" not in result.message


def test_the_check_of_streams_is_for_frameworks_with_streams_only():
    with pytest.raises(ValueError, match="not enough values"):  # no line at all
        judged("linear_scan", scan, "stream", framework="numpy")


def elsewhere(a, b):
    """A result on the second device."""
    x = scan(a, b)
    x.place = 1
    return x


PLACES = {
    "another device": (elsewhere, "an array on cuda:1"),
    "the host": (lambda a, b: np.array(scan(a, b), subok=False), "a NumPy array on the host"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_result_in_another_place_is_told_with_the_place_that_was_wanted(place):
    function, told = PLACES[place]
    result = verdict(function)
    wanted = "want one on cuda:0: the result must stay with the arguments"
    assert (result.verdict, result.message) == ("wrong", f"`x` is {told}, {wanted}")


def illegal(a, b):
    """Queues a kernel that reads an illegal address; the device is lost."""

    def kernel():
        Device.broken = ILLEGAL
        raise CUDARuntimeError(f"{ILLEGAL}\nmore lines of advice")

    current().launch(kernel)
    return b * 0 if a is None else b.view(np.ndarray).copy().view(Array)


def test_an_error_that_is_reported_late_is_that_of_the_call_that_queued_it():
    outcome = called(illegal, ARRAYS, framework="cupy")
    told = f"launched a kernel that failed: {ILLEGAL}; this process can no longer use the device"
    assert (outcome.status, outcome.message) == ("crashed", told)
    later = called(scan, ARRAYS, framework="cupy")
    assert later.status == "crashed"
    assert later.message.startswith(f"raised CUDARuntimeError: {ILLEGAL}")


def refused(a, b):
    """Queues a launch that the device refuses; the device stays usable."""

    def kernel():
        raise CUDARuntimeError("cudaErrorInvalidConfiguration: invalid configuration argument")

    current().launch(kernel)
    return scan(a.view(np.ndarray), b.view(np.ndarray)).view(Array)


def test_a_launch_that_is_refused_is_an_error_and_the_next_call_works():
    result = verdict(refused)
    assert result.verdict == "error"
    assert result.message == (
        "launched a kernel that failed: "
        "cudaErrorInvalidConfiguration: invalid configuration argument"
    )
    assert called(scan, ARRAYS, framework="cupy").status == "ok"


def test_too_little_memory_is_an_error_and_not_a_wrong_value_and_the_reserve_is_given_back():
    def greedy(a, b):
        raise OutOfMemoryError("Out of memory allocating 2,147,483,648 bytes")

    result = verdict(greedy)
    told = "ran out of the device's memory: Out of memory allocating 2,147,483,648 bytes"
    assert (result.verdict, result.message) == ("error", told)
    assert Pool.emptied > 0


def in_tf32(a, b):
    """A scan whose products are rounded to the eleven bits of TF32."""
    x = scan(_few_bits(a), _few_bits(b))
    return x.astype(b.dtype)


def _few_bits(x):
    plain = np.asarray(x.view(np.ndarray), np.float32)
    return ((plain.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).view(Array)


def test_the_setting_of_tf32_is_a_hint_only_where_it_is_on(monkeypatch):
    result = verdict(in_tf32)
    assert result.verdict == "inaccurate"
    assert "TF32" not in result.hint
    monkeypatch.setenv("CUPY_TF32", "1")
    told = (
        'as accurate as TF32: CUPY_TF32=1 is on; declare Budget(computes="tf32"), or switch it off'
    )
    assert verdict(in_tf32).hint == told
    assert "TF32" not in verdict(lambda a, b: in_tf32(a, b) * 2).hint  # wrong, not inaccurate


FRAGILE = """
from fake_cupy import ILLEGAL, CUDARuntimeError, Device, current, scan

from refssm.testing import implements


@implements("linear_scan", framework="cupy")
def fragile(a, b):
    if b.shape[-2] == 3:
        Device.broken = ILLEGAL
        raise CUDARuntimeError(ILLEGAL)
    return scan(a, b)
"""
STUB = """
import sys

from fake_cupy import double

sys.modules["cupy"] = double(1)
"""


def test_a_process_that_lost_its_device_is_replaced_once(tmp_path, monkeypatch):
    tests = Path(__file__).parents[2]
    for name, text in (("cupy.py", STUB), ("fragile.py", FRAGILE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [str(tmp_path), str(tests), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    whole, short = ARRAYS, [a[:, :2] for a in ARRAYS]
    with Worker(str(tmp_path / "fragile.py"), timeout=60) as worker:
        seen = [worker.call("linear_scan", a, {}) for a in (short, whole, short, whole, short)]
    assert [outcome.status for outcome in seen] == ["ok", "crashed", "ok", "crashed", "crashed"]
    told = f"raised CUDARuntimeError: {ILLEGAL} (fragile.py:11); "
    assert seen[1].message == f"{told}this process can no longer use the device"
    assert seen[4].message == f"not called again: an earlier call {seen[1].message}"
