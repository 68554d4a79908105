"""The sanitizers' programs: what they say, and that nothing else passes for a clean run."""

import numpy as np
import pytest
from gpu.hosted import PLANTED, kernel

from refssm_gpu._host import sanitize
from refssm_gpu._host.launch import HostError
from refssm_gpu._host.sanitize import SANITIZERS, SanitizerError, recorded, report, reports
from refssm_gpu._host.settings import settings

pytestmark = pytest.mark.long
ASAN, TSAN, UBSAN = SANITIZERS
N = np.int64(64)
TEXT = (PLANTED / "features.cuh").read_text(encoding="utf-8").splitlines()


def zeros(n=64):
    return np.zeros(n, np.float32)


def test_a_report_names_sanitizer_kind_kernel_and_line():
    (line,) = [i for i, text in enumerate(TEXT, 1) if "narrow<E>(widen(x[i])" in text]
    said = reports(lambda: kernel("twice", "float32")(1, zeros(63), zeros(), N), [ASAN], run=False)
    assert said == [f"{ASAN}: heap-buffer-overflow in twice<float32> at features.cuh:{line}"]


def test_an_array_is_watched_up_to_its_last_byte():
    run = kernel("twice", "float16")
    assert reports(lambda: run(1, np.zeros(64, "e"), np.zeros(64, "e"), N), [ASAN]) == []
    assert reports(lambda: run(1, np.zeros(63, "e"), np.zeros(64, "e"), N), [ASAN], run=False)
    assert reports(lambda: run(1, np.zeros(64, "e"), np.zeros(63, "e"), N), [ASAN], run=False)


def test_a_null_pointer_is_reported():
    run = kernel("twice", "float32")
    assert reports(lambda: run(1, zeros(), None, N), [ASAN], run=False)
    (said,) = reports(lambda: run(1, zeros(), None, N), [UBSAN], run=False)
    assert "null pointer" in said


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_what_the_engine_stops_is_an_error_and_never_clean(sanitizer):
    with pytest.raises(SanitizerError, match="leaves the kernel, while thread 0 waits"):
        reports(lambda: kernel("rules", 2)(1, zeros()), [sanitizer], run=False)
    with pytest.raises(SanitizerError, match="leaves the kernel, while thread 0 waits"):
        reports(lambda: kernel("rules", 2)(1, zeros()), [sanitizer])
    with pytest.raises(HostError):
        reports(lambda: kernel("rules", 2)(1, zeros()), [])


def divided_by_zero():
    kernel("divide", "int", block=1)(1, np.array([1, 0], np.int32), np.zeros(1, np.int32))


@pytest.mark.parametrize(("sanitizer", "kind"), [(ASAN, "FPE"), (TSAN, "FPE"), (UBSAN, "division")])
def test_a_division_by_zero_is_reported(sanitizer, kind):
    (said,) = reports(divided_by_zero, [sanitizer], run=False)
    assert kind in said
    assert "divide<int> at features.cuh:" in said


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_a_program_that_dies_without_a_report_is_an_error(monkeypatch, sanitizer):
    monkeypatch.setattr(sanitize, "_program", lambda *_: "/bin/false")
    with pytest.raises(SanitizerError, match="divide<int> ended with 1: no words"):
        reports(divided_by_zero, [sanitizer], run=False)


def test_a_program_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(sanitize, "SECONDS", 1e-6)
    with pytest.raises(SanitizerError, match="twice<float32> ran over"):
        reports(lambda: kernel("twice", "float32")(1, zeros(), zeros(), N), [ASAN])


def test_a_launch_is_recorded_with_the_memory_before_it_ran():
    x = np.arange(64, dtype=np.float32)
    with recorded() as launches:
        kernel("twice", "float32")(1, x, x, N)  # in place
    assert (x == 2 * np.arange(64)).all()
    (launch,) = launches
    assert launch.memory == (np.arange(64, dtype=np.float32).tobytes(),)
    assert launch.arguments == ((0, 0), (0, 0), N.tobytes())
    assert [report(launch, sanitizer) for sanitizer in SANITIZERS] == [None] * 3


def test_arrays_that_overlap_stay_so():
    x = np.arange(96, dtype=np.float32)
    with recorded(run=False) as launches:
        kernel("twice", "float32")(1, x[32:], x[:64], N)
        kernel("twice", "float32")(1, x[:32], x[32:], np.int64(32))
    assert launches[0].memory == (x.tobytes(),)
    assert launches[0].arguments[:2] == ((0, 128), (0, 0))
    assert launches[1].memory == (x[:32].tobytes(), x[32:].tobytes())


def test_records_hold_records_null_pointers_dynamic_memory_and_settings():
    fields = np.dtype([("n", np.int64), ("step", np.int32), ("shift", np.int32)])
    record, out = np.array([(10, 3, -2)], fields), np.zeros(10)
    calls = (
        lambda: kernel("of_record", "double")(1, out, record),
        lambda: kernel("first_sight", "float32")(3, zeros(3 * 128), shared=256),
        lambda: kernel("started", "int")(2, np.zeros(1, np.int32), np.zeros(128, np.int32)),
    )
    with settings(order=7):
        assert [said for call in calls for said in reports(call)] == []
    record["n"] = 11
    assert "of_record<double>" in reports(lambda: calls[0](), [ASAN], run=False)[0]
    short = zeros(2 * 128)
    with settings(only=((2, 0, 0),)):  # the block that writes beyond
        call = lambda: kernel("first_sight", "float32")(3, short, shared=256)  # noqa: E731
        assert reports(call, [ASAN], run=False)


def test_threads_of_different_blocks_are_not_ordered():
    counter, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
    assert reports(lambda: kernel("started", "int", block=32)(2, counter, out), [TSAN]) == []
    (said,) = reports(lambda: kernel("half", "float32")(2, zeros(), zeros()), [TSAN])
    assert said.startswith(f"{TSAN}: data race in half<float32> at features.cuh:")


def test_many_blocks_run_under_the_thread_sanitizer():
    out = zeros(64 * 80)  # more fibers than it can have at the same time
    assert reports(lambda: kernel("rules", 0)(80, out), [TSAN]) == []


def test_a_function_made_of_meet_is_clean():
    a, b = np.ones((2, 4, 4))
    assert reports(lambda: kernel("product", "double", block=32)(1, a, b, np.zeros((4, 4)))) == []


def test_arrays_too_large_for_a_record_are_refused():
    huge = np.lib.stride_tricks.as_strided(zeros(1), (2**27,), (4,))
    with pytest.raises(ValueError, match=r"a record has at most \d+"), recorded(run=False):
        kernel("twice", "float32")(1, huge, huge, N)
