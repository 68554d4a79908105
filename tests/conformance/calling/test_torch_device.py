"""PyTorch's adapter on a CUDA device, as far as it can be tested without one.

`test_cuda_device.py` has the tests that need a device.
"""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
from fake_cupy import scan
from frameworks import found, judged

from refssm.conformance.calling.adapters import adapter
from refssm.conformance.calling.one_call import call
from refssm.conformance.number_types import number_type

torch = pytest.importorskip("torch")
ADAPTER = adapter("torch")


def test_a_result_on_another_device_is_told_with_the_device_that_was_wanted():
    result = judged("linear_scan", lambda a, b: scan(a, b).to("meta"), "value", framework="torch")
    told = "`x` is a tensor on meta, want one on cpu: the result must stay with the arguments"
    assert (result.verdict, result.message) == ("wrong", told)


@pytest.fixture
def as_if_on_cuda(monkeypatch):
    """The adapter as if its device had streams; nothing is on a device."""
    monkeypatch.setattr(ADAPTER, "streams", True)
    monkeypatch.setattr(ADAPTER, "faults", (RuntimeError,))
    monkeypatch.setattr(ADAPTER, "inside", lambda kind: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    return monkeypatch


ADVICE = "CUDA kernel errors might be asynchronously reported at some other API call"


def test_an_error_of_a_queued_kernel_is_told_by_its_first_line(as_if_on_cuda):
    def failing(device):
        raise RuntimeError(f"CUDA error: an illegal memory access was encountered\n{ADVICE}")

    def queued(a, b):
        as_if_on_cuda.setattr(torch.cuda, "synchronize", failing)
        return scan(a, b)

    arrays = [np.ones((3, 2), np.float32)] * 2
    made = found("linear_scan", queued, framework="torch")
    vars(made)["adapter"] = ADAPTER
    outcome = call(made, arrays, {})
    told = "launched a kernel that failed: CUDA error: an illegal memory access was encountered"
    assert outcome.message == f"{told}; this process can no longer use the device"
    assert outcome.status == "crashed"


def test_too_little_memory_of_the_device_is_an_error_and_the_reserve_is_given_back(as_if_on_cuda):
    emptied = []
    as_if_on_cuda.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))

    def greedy(a, b):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    made = found("linear_scan", greedy, framework="torch")
    vars(made)["adapter"] = ADAPTER
    outcome = call(made, [np.ones((3, 2), np.float32)] * 2, {})
    told = "ran out of the device's memory: CUDA out of memory. Tried to allocate 20.00 GiB."
    assert (outcome.status, outcome.message, emptied) == ("raised", told, [1])


def test_a_numpy_result_of_a_function_on_a_device_is_told(as_if_on_cuda):
    unusable = ADAPTER.take(np.ones(2, np.float32), number_type("float32"))
    assert unusable.sentence.startswith("is a NumPy array on the host, want one on cpu")


SETTINGS = """
import torch
from refssm.conformance.calling.adapters.torch_tensors import Torch
made = Torch()
assert made.tf32 == "", made.tf32  # they are for CUDA devices
made.streams = True
assert made.tf32 == "torch.backends.cudnn.allow_tf32", made.tf32  # PyTorch's own default
torch.backends.cudnn.allow_tf32 = False
assert made.tf32 == "", made.tf32
{}
assert made.tf32 == "torch.backends.cuda.matmul.allow_tf32", made.tf32
"""


@pytest.mark.parametrize(
    "setting",
    ["torch.backends.cuda.matmul.allow_tf32 = True", "torch.set_float32_matmul_precision('high')"]
    + ["torch.backends.cuda.matmul.fp32_precision = 'tf32'"]
    * hasattr(torch.backends.cudnn, "conv"),
)
def test_the_settings_of_tf32_are_read_however_they_were_written(setting):
    code = SETTINGS.format(setting)
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert told.returncode == 0, told.stderr
