"""First calls in each type: what counts as a type that is not accepted, and what as a failure."""

import json
import subprocess
import sys

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run, scan

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.worker import NOT_CALLED, RESTARTS, Worker
from refssm.conformance.running.scope import Scope
from refssm.conformance.running.settings import Settings
from refssm.conformance.running.sweeping import ONCE

ILLEGAL = "CUDA error: an illegal memory access was encountered"
OF_KERNELS = [
    ("HostError", "scan<complex64>: block (0, 0, 0), thread 3: waits at this __syncthreads"),
    ("CompileError", "scan<complex64>: the C++ compiler refuses it"),
    ("CompileException", "scan.cu(3): error: identifier is undefined"),
    ("RuntimeError", ILLEGAL),
    ("AcceleratorError", ILLEGAL),
    ("CUDARuntimeError", "cudaErrorLaunchFailure: unspecified launch failure"),
    ("CUDADriverError", "CUDA_ERROR_INVALID_VALUE: invalid argument"),
    ("CudaAPIError", "[700] Call to cuCtxSynchronize results in CUDA_ERROR_ILLEGAL_ADDRESS"),
    ("XlaRuntimeError", "INTERNAL: failed to launch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    ("RuntimeError", "an illegal memory access was encountered"),
    ("Error", "misaligned address"),
    ("RuntimeError", "device-side assert triggered"),
]
REFUSALS = [
    ("TypeError", "complex numbers are not supported"),
    ("RuntimeError", "\"addmm\" not implemented for 'ComplexFloat'"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasGemmEx`"),
    ("AcceleratorError", "CUDA error: operation not supported"),
    ("CUDARuntimeError", "cudaErrorNotSupported: operation not supported"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling `cublasCreate`"),
]


BOTH = ("float32", "complex64")


def picky(name, message):
    """A right scan that raises this exception for complex numbers."""
    error = type(name, (Exception,), {})

    def refusing(a, b):
        if np.result_type(a, b).kind == "c":
            raise error(message)
        return scan(a, b)

    return refusing


@pytest.mark.parametrize(("name", "message"), OF_KERNELS)
def test_a_kernel_that_fails_is_an_error_and_no_type_that_is_refused(name, message):
    real, other = judged("linear_scan", picky(name, message), "value", types=BOTH)
    assert (real.verdict, other.dtype, other.verdict) == ("pass", "complex64", "error")
    assert other.message.startswith(f"raised {name}: {message}")


@pytest.mark.parametrize(("name", "message"), REFUSALS)
def test_a_type_that_a_library_lacks_is_a_skip(name, message):
    skipped, real = judged("linear_scan", picky(name, message), "value", types=BOTH)
    assert (skipped.verdict, real.verdict) == ("skipped", "pass")
    assert f"complex64 is not accepted: raised {name}: {message}" in skipped.message


def test_a_declared_type_that_raises_is_a_failure_in_one_sentence():
    function = picky("TypeError", "real only")
    found = judged("linear_scan", function, types=BOTH, dtypes=BOTH)
    broken = [r for r in found if r.dtype == "complex64"]
    assert [(r.check, r.verdict) for r in broken] == [("value", "error")]
    assert broken[0].message.startswith("declared for complex64, but raised TypeError: real only")
    assert {r.verdict for r in found if r.dtype == "float32"} == {"pass", "skipped"}


def test_a_declared_type_that_no_call_accepts_is_judged_in_all_checks():
    found = judged("linear_scan", picky("TypeError", "real only"), dtypes=("complex64",))
    assert [r.verdict for r in found].count("error") > 5
    assert not [r for r in found if r.verdict not in ("error", "skipped")]


def test_every_check_of_a_declaration_is_one_that_exists():
    offer = Offer("cauchy_kernel", dtypes=BOTH)
    checks = Scope(operator_named("cauchy_kernel"), offer, Settings()).every_check()
    assert "value[complex64]" in checks
    assert not [check for check in checks if "float32" in check]


KILLED = SCAN.replace(
    "    x =", "    if b.shape[-2:] == (5, 3):\n        import os; os.abort()\n    x =", 1
)


@pytest.mark.long
def test_a_first_call_that_kills_the_process_is_the_case_that_is_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, KILLED)
    result, out, _ = run(capfd, "verify", "my_ops.py", "--profile", "quick", "--json")
    assert result == 1
    found = json.loads(out)["results"]
    first, *others = found
    assert (first["check"], first["dtype"], first["verdict"]) == ("value", "float32", "error")
    assert first["message"].startswith("killed the process by SIGABRT")
    assert "l=5 d=3" in first["smallest"] or "l=5 n=3" in first["smallest"]
    alone = subprocess.run([sys.executable, first["alone"]], capture_output=True, encoding="utf-8")
    assert alone.returncode == -6
    result, out, _ = run(capfd, "replay", first["counterexample"])
    assert (result, "killed the process by SIGABRT" in out) == (1, True)
    later = [r for r in others if r["message"].startswith("not called again: an earlier call")]
    assert later
    assert not [r for r in later if r["smallest"] or r["counterexample"] or r["alone"]]


ENDS = "\n{of}\n    import os; os.abort()\n"
STEP = "def linear_step(a, b, x):\n    return a * x + b\n"


@pytest.mark.long
def test_what_one_implementation_ends_is_not_the_end_of_the_next(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, ENDS.format(of="def linear_scan(a, b):") + STEP)
    asked = ("--check", "value", "--profile", "quick", "--json")
    for workers in ("1", "2"):
        result, out, _ = run(capfd, "verify", "my_ops.py", *asked, "--workers", workers)
        told = [(r["operator"], r["verdict"]) for r in json.loads(out)["results"]]
        assert result == 1
        assert {verdict for name, verdict in told if name == "linear_scan"} == {"error"}, told
        assert {verdict for name, verdict in told if name == "linear_step"} == {"pass"}, told


@pytest.mark.long
def test_after_a_few_restarts_a_file_is_not_called_again(tmp_path):
    plugin(tmp_path, SCAN + ENDS.format(of="def linear_step(a, b, x):"))
    ones = np.ones((2, 3), np.float32)
    with Worker(str(tmp_path / "my_ops.py")) as worker:
        for _ in range(RESTARTS):  # as many implementations, each of which ends its process
            worker.begin_another()
            seen = [worker.call("linear_step", [ones[0]] * 3, {}) for _ in range(3)]
        assert worker.restarts == RESTARTS
        assert all(outcome.message.startswith(NOT_CALLED) for outcome in seen)
        worker.begin_another()
        assert worker.call("linear_scan", [ones, ones], {}).message.startswith(NOT_CALLED)


@pytest.mark.long
def test_a_process_that_died_is_not_the_fault_of_only(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    marked = '@implements("linear_scan", only=lambda x: x)\ndef linear_scan'
    plugin(
        tmp_path,
        "from refssm.testing import implements\n" + KILLED.replace("def linear_scan", marked),
    )
    _, out, _ = run(capfd, "verify", "my_ops.py", "--profile", "quick", "--json")
    _, *others = json.loads(out)["results"]
    later = [r for r in others if "not called again" in r["message"]]
    assert later
    assert not [r for r in later if "only" in r["message"] or r["smallest"] or r["counterexample"]]


@pytest.mark.long
def test_a_first_call_that_kills_fails_whichever_check_is_asked_for(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, KILLED)
    result, out, _ = run(capfd, "verify", "my_ops.py", "--check", "zero", "--dtype", "float32")
    assert result == 1
    assert "FAIL linear_scan/value[float32]" in out


@pytest.mark.long
def test_a_report_of_the_host_build_can_be_pasted(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN.replace("    return x", "    return x + 1"))
    call = ("verify", "my_ops.py", "--check", "value", "--dtype", "float32")
    _, out, _ = run(capfd, *call)
    assert "REFSSM_GPU" not in out
    monkeypatch.setenv("REFSSM_GPU", "host")
    _, out, _ = run(capfd, *call)
    assert any(x.endswith(", REFSSM_GPU=host") for x in out.splitlines())
    assert "\n  again: REFSSM_GPU=host refssm replay .refssm/" in out
    alone = out.partition("\n  alone: ")[2].splitlines()[0].partition(" (")[0]
    assert alone.startswith("REFSSM_GPU=host python .refssm/repro_")
    text = (tmp_path / alone.split()[2]).read_text(encoding="utf-8")
    assert f"\n{alone} " in text


def test_a_package_without_functions_names_its_modules(capfd):
    result, _, err = run(capfd, "verify", "refssm_gpu")
    assert result == 4
    assert "(its modules are refssm_gpu.cauchy, refssm_gpu.convolution, " in err
    assert "_launching" not in err


@pytest.mark.parametrize(
    ("wrong_in", "dtype", "said"),
    [
        (1, "float32", "the first call in float32: worst x"),
        (2, "complex64", "the first call in complex64: worst x"),
        (3, "complex64", "the first call with real and complex arguments: worst x"),
    ],
)
def test_calls_before_the_first_check_are_judged_as_values(wrong_in, dtype, said):
    calls = []

    def wrong_once(a, b):
        calls.append(1)
        return scan(a, b) + (len(calls) == wrong_in)

    found = judged("linear_scan", wrong_once, "value", types=BOTH)
    bad = [r for r in found if r.failed]
    assert [r.dtype for r in bad] == [dtype]
    assert bad[0].message.startswith(said)
    assert bad[0].hint == ONCE


def test_a_function_that_is_called_slice_by_slice_is_not_blamed_for_its_batched_call():
    def one_sequence(a, b):
        x, state = np.empty_like(b), 0
        for k in range(len(b)):
            x[k] = state = a[k] * state + b[k]
        return x

    assert not any(r.failed for r in judged("linear_scan", one_sequence, "value", types=BOTH[:1]))
