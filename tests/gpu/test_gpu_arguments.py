"""What a user of refssm_gpu reads when a call cannot run: one sentence each."""

import subprocess
import sys
import weakref

import fake_card
import numpy as np
import pytest
from fake_card import array

from refssm.scan import LINEAR_STEP
from refssm_gpu import NoCard
from refssm_gpu._launching.checked import converted, mirror, within_memory
from refssm_gpu._launching.kernel import FIELDS
from refssm_gpu.scan import dense_scan, linear_step

A, B = np.eye(2), np.ones((3, 2))
MACHINES = {
    "no NVIDIA driver is loaded here": {"driver": 0, "available": False},
    "finds no card, or the driver is older": {"available": False},
    "NVRTC is not found; what brings it: pip install 'cupy-cuda13x[ctk]', or 'cupy-cuda12x[ctk]' "
    "for a driver of CUDA 12": {"compiler": False},
}


@pytest.mark.parametrize("sentence", MACHINES)
def test_a_call_says_what_the_machine_lacks(monkeypatch, sentence):
    with fake_card.installed(monkeypatch, **MACHINES[sentence]), pytest.raises(NoCard) as error:
        dense_scan(A, B)
    assert sentence in str(error.value)
    assert str(error.value).startswith("dense_scan runs on a CUDA GPU, and ")


@pytest.mark.parametrize(("name", "arguments"), [("linear_scan", 2), ("linear_scan_vjp", 3)])
def test_without_cupy_the_package_imports_and_a_call_says_how_to_install_it(name, arguments):
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'cupy' else real(name, *a)\n"
        f"from refssm_gpu.scan import {name}\n"
        f"{name}(*[[[1.0]]] * {arguments})\n"
    )
    env = {"REFSSM_GPU": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", env=env, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"refssm_gpu._launching.missing.NoCard: {name} runs on a CUDA GPU, and CuPy is not "
        "installed: pip install 'cupy-cuda13x[ctk]', or 'cupy-cuda12x[ctk]' for a driver of CUDA 12"
    )


def test_a_numpy_array_on_the_card_is_refused_with_advice(monkeypatch):
    with fake_card.installed(monkeypatch), pytest.raises(TypeError) as error:
        linear_step(array([0.5]), np.ones(1), array([1.0]))
    assert str(error.value) == (
        "linear_step: `b` is a numpy.ndarray, wanted a CuPy array; "
        "cupy.asarray copies it to the GPU"
    )


def test_an_old_card_is_named_where_the_arrays_are(monkeypatch):
    monkeypatch.setattr(fake_card.Device, "compute_capability", "75")
    with fake_card.installed(monkeypatch), pytest.raises(NoCard) as error:
        linear_step(*[array([0.5], place=1)] * 3)
    assert str(error.value) == (
        "linear_step runs on a CUDA GPU, and cuda:1 has compute capability 7.5; "
        "wanted 8.0 (A100) or newer"
    )


def test_memory_that_a_library_lacks_is_the_same_sentence(monkeypatch):
    def transform():
        raise fake_card.Error("CUFFT_ALLOC_FAILED")

    with fake_card.installed(monkeypatch), pytest.raises(MemoryError) as error:
        within_memory("causal_convolution", array([1.0]), transform)
    assert str(error.value) == (
        "causal_convolution: CUFFT_ALLOC_FAILED; cuda:0 has 3.0 GB free of 80.0 GB"
    )


def test_arrays_on_two_devices_are_refused_by_name(monkeypatch):
    with fake_card.installed(monkeypatch), pytest.raises(ValueError, match="`x` is on") as error:
        linear_step(array([0.5]), array([1.0]), array([1.0], place=1))
    assert str(error.value) == "linear_step: `x` is on cuda:1, but `a` is on cuda:0"


def test_too_little_memory_is_one_sentence_and_leaves_nothing_allocated(monkeypatch):
    kept = []

    def greedy():
        made = array(np.ones(1000))
        kept.append(weakref.ref(made))
        raise fake_card.OutOfMemoryError("Out of memory allocating 17,179,869,184 bytes (allocated")

    with fake_card.installed(monkeypatch), pytest.raises(MemoryError) as error:
        within_memory("linear_scan", array([1.0]), greedy)
    assert str(error.value) == (
        "linear_scan: Out of memory allocating 17,179,869,184 bytes; "
        "cuda:0 has 3.0 GB free of 80.0 GB"
    )
    assert kept[0]() is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([[1.0]], B), "dense_scan: `A` is a list, wanted a NumPy array (REFSSM_GPU=host)"),
        ((A.astype(np.float16), B), "dense_scan: `A` has dtype float16, wanted one of float32"),
        ((np.eye(3), B), "dense_scan: `b` has n=2, but earlier arguments have n=3"),
        ((A,), "dense_scan: missing a required argument: 'b'"),
    ],
)
def test_bad_arguments_are_named(arguments, sentence):
    with pytest.raises((TypeError, ValueError)) as error:
        dense_scan(*arguments)
    assert sentence in str(error.value)


def test_an_unknown_value_of_the_switch_is_named(monkeypatch):
    monkeypatch.setenv("REFSSM_GPU", "hots")
    with pytest.raises(ValueError, match="REFSSM_GPU: wanted nothing or 'host', got 'hots'"):
        dense_scan(A, B)


def test_integers_and_numbers_become_floats_of_the_others_precision():
    single = np.ones(2, np.float32)
    made = converted("f", "ab", [0.5, single], FIELDS, (), (), (), single)
    assert [x.dtype for x in made] == [np.float32, np.float32]
    assert linear_step(np.ones(2, int), np.ones(2, int), np.ones(2)).dtype == np.float64


def test_halves_are_refused_where_no_kernel_takes_them():
    @mirror(LINEAR_STEP)
    def linear_step(a, b, x):
        return a

    with pytest.raises(TypeError, match="float16, wanted one of float32, float64, complex64"):
        linear_step(*np.ones((3, 1), np.float16))
