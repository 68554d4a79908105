"""CuPy's adapter with a fake CuPy made from NumPy: tests its logic, not a GPU.

The fake is a module `cupy` whose arrays are a subclass of NumPy's (`fake_cupy`); NumPy's own
functions and the other adapters never receive them. It cannot show what differs on a device (memory
invisible to the host, kernels); the last test runs if there is a device. Streams and errors of
devices are in `test_cupy_streams.py`.
"""

import re
import sys

import numpy as np
import pytest
from fake_cupy import Device, double, reset, scan
from frameworks import SHAPES, found, identical, judged, ordinary

from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.adapters.numpy_arrays import NoDevice, Unusable
from refssm.conformance.number_types import number_type

MODULE = "refssm.conformance.calling.adapters.cupy_arrays"
JUDGED = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
KEPT = ("", "every other entry", "negative strides", "column-major", "padded rows",
        "half of an array", "expanded")  # fmt: skip
SINGLE = number_type("float32")


@pytest.fixture
def cupy(monkeypatch):
    """The fake with two devices; the adapter is imported with it and removed after the test."""
    module = double(2)
    monkeypatch.setitem(sys.modules, "cupy", module)
    reset()
    before = sys.modules.pop(MODULE, None)
    yield module
    sys.modules.pop(MODULE, None)
    if before is not None:
        sys.modules[MODULE] = before


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", JUDGED)
def test_an_array_goes_in_and_comes_out_unchanged(cupy, dtype, shape):
    made, kind, a = adapter("cupy"), number_type(dtype), ordinary(dtype, shape)
    x = made.give(a, kind)
    assert isinstance(x, cupy.ndarray)
    assert (x.dtype.name, x.shape) == (dtype, shape)
    y = made.take(x, kind)
    assert type(y) is np.ndarray
    assert identical(y, a)
    assert not np.may_share_memory(x, a)


def test_a_cupy_that_does_not_know_bfloat16_is_a_reason_to_skip(cupy, monkeypatch):
    assert adapter("cupy").lacks == {}
    monkeypatch.setattr(cupy.equal, "types", ["ee->?", "ff->?"])
    told = "bfloat16 is not judged: CuPy 0.0 of the double does not know it; "
    told += "CuPy 14 with NumPy 2.1.2 does"
    assert adapter("cupy").lacks == {"bfloat16": told}
    result = judged("linear_scan", scan, "value", framework="cupy", dtype="bfloat16")
    assert (result.verdict, result.message) == ("skipped", told)


@pytest.mark.parametrize("view", KEPT)
def test_a_view_in_bfloat16_has_the_numbers_of_the_original(cupy, view):
    made, kind, a = adapter("cupy"), number_type("bfloat16"), ordinary("bfloat16", (2, 6))
    x = made.give(a, kind, view)
    assert x.dtype.name == "bfloat16"
    assert identical(made.take(x, kind), a)
    assert made.same(x, made.copied(x))


PROMISED = {
    "": (48, 16, 4),
    "every other entry": (96, 32, 8),
    "negative strides": (-48, -16, -4),
    "column-major": (4, 8, 24),
    "padded rows": (80, 20, 4),
    "half of an array": (96, 16, 4),
    "expanded": (0, 16, 0),
}
ODDLY = np.broadcast_to(ordinary("float32", (8,))[4:7, None], (2, 3, 4))  # one number along l and n


def test_the_views_are_those_whose_strides_a_device_can_have(cupy):
    assert tuple(adapter("cupy").views) == KEPT


@pytest.mark.parametrize("view", KEPT)
def test_a_view_has_the_numbers_and_the_strides_it_promises(cupy, view):
    made = adapter("cupy")
    x = made.give(ODDLY.copy(), SINGLE, view)
    assert x.strides == PROMISED[view]
    assert identical(made.take(x, SINGLE), ODDLY)
    assert len({made.give(ODDLY.copy(), SINGLE, name).strides for name in KEPT}) == len(KEPT)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", KEPT)
def test_a_view_of_any_shape_has_the_numbers_of_the_original(cupy, view, shape):
    made, a = adapter("cupy"), ordinary("float32", shape)
    x = made.give(a, SINGLE, view)
    assert x.shape == shape
    assert identical(made.take(x, SINGLE), a)


@pytest.mark.parametrize("view", ["", "negative strides", "column-major", "expanded"])
def test_what_is_written_to_a_view_does_not_reach_the_host(cupy, view):
    made, a = adapter("cupy"), ordinary("float32", (2, 3))
    before, x = a.copy(), made.give(a, SINGLE, view)
    copy = made.copied(x)
    assert made.same(x, copy)
    x[0, 0] = 7.0
    assert not made.same(x, copy)
    assert identical(a, before)


def test_what_is_no_array_of_its_own_is_told(cupy):
    made = adapter("cupy")
    assert made.take(np.ones(2, np.float32), SINGLE).type == "ndarray"
    assert made.take([1.0], SINGLE) == Unusable("list")
    assert made.take(1.0, SINGLE) == Unusable("float")
    x = made.give(np.ones(2, np.float32), SINGLE)
    assert identical(made.take(x.astype(np.float16), SINGLE), np.ones(2, np.float16))
    half = number_type("float16")
    assert identical(made.take(x.astype(np.float16), half), np.ones(2, np.float32))
    assert identical(made.take(x, half), np.ones(2))  # wider


def test_shared_memory_is_seen_and_an_empty_array_shares_none(cupy):
    made = adapter("cupy")
    x, y = (made.give(ordinary("float32", (2, 3)), SINGLE) for _ in range(2))
    assert made.share(x, x[:, 1:])
    assert made.share(cupy.broadcast_to(x, (4, 2, 3)), x)
    assert not made.share(x, y)
    assert not made.share(x, x[:, :0])
    assert not made.share(x, None)


DEVICES = {"": 0, "cuda": 0, "gpu": 0, "cuda:0": 0, "cuda:1": 1}


@pytest.mark.parametrize("device", DEVICES)
def test_a_device_is_used_and_told_by_its_name(cupy, device, monkeypatch):
    monkeypatch.delenv("CUPY_TF32", raising=False)
    made = adapter("cupy", device)
    assert Device.used == (DEVICES[device],)
    number = DEVICES[device]
    told = f"cupy 0.0 of the double, device cuda:{number} (Double, compute capability 9.0), "
    told += "driver for CUDA 13.0, runtime CUDA 12.8, flush to zero: no"
    assert made.about() == f"{told}, TF32 in products: no"
    assert made.tf32 == ""
    monkeypatch.setenv("CUPY_TF32", "1")
    assert made.about() == f"{told}, TF32 in products: yes"
    assert made.tf32 == "CUPY_TF32=1"


@pytest.mark.parametrize("device", ["cuda:2", "cpu", "tpu", "cuda:x", "cuda:-1"])
def test_a_device_that_is_not_there_is_told_in_one_line(cupy, device):
    told = f"cupy has no device {device!r} here; devices found: 2"
    with pytest.raises(NoDevice, match=f"^{re.escape(told)}$"):
        adapter("cupy", device)


def test_no_device_at_all_is_a_reason_to_skip(cupy, monkeypatch):
    def forbidden():
        raise RuntimeError("cudaErrorInsufficientDriver")  # CuPy's error without a driver

    monkeypatch.setattr(cupy, "is_available", lambda: False)
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", forbidden)
    offer = found("linear_scan", scan, framework="cupy").offer
    assert offer.absent == "cupy has no device 'cuda' here; devices found: 0"
    assert judged("linear_scan", scan, "value", framework="cupy").verdict == "skipped"


def test_a_library_that_is_broken_is_a_reason_to_skip_in_one_line(tmp_path, monkeypatch):
    told = "=====\\nFailed to import CuPy.\\n\\nOriginal error:\\n  libcuda.so.1: not there\\n====="
    (tmp_path / "cupy.py").write_text(f'raise ImportError("{told}")', encoding="utf-8")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    absent = found("linear_scan", scan, framework="cupy").offer.absent
    assert "Failed to import CuPy" in absent
    assert len(absent.splitlines()) == 1


PLANTED = {
    "value": lambda a, b: scan(a, b * (b.shape[-2] % 2 + 1)),
    "strides": lambda a, b: scan(a, b if b.flags.c_contiguous else b + 1),
    "unchanged": lambda a, b: scan(a, b.__imul__(2)) / 2,
    "alias": lambda a, b: b[..., ::-1],
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("check", PLANTED)
def test_a_scan_is_judged_through_the_double(cupy, check, dtype):
    how = {"framework": "cupy", "dtype": dtype, "dtypes": (dtype,)}
    assert judged("linear_scan", scan, check, **how).verdict == "pass"
    result = judged("linear_scan", PLANTED[check], check, **how)
    assert result.verdict == "wrong"
    assert result.message


def test_there_are_no_read_only_arrays(cupy):
    result = judged("linear_scan", scan, "readonly", framework="cupy")
    assert (result.verdict, result.message) == ("skipped", "cupy has no read-only arrays")


def test_a_scan_is_judged_on_a_real_device():
    real = pytest.importorskip("cupy", exc_type=ImportError)
    if not real.is_available():
        pytest.skip("cupy is installed, but there is no CUDA device")
    for check, wrong in PLANTED.items():
        assert judged("linear_scan", scan, check, framework="cupy").verdict == "pass"
        assert judged("linear_scan", wrong, check, framework="cupy").verdict == "wrong"
