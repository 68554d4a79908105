"""How calls are timed on a card, with a fake CuPy whose clocks go on by what is queued."""

import sys
from importlib import import_module

import fake_cuda
import pytest

MODULE = "refssm.bench.measuring.card"
PYTHON, KERNEL = 3e-3, 1e-3  # seconds of one call


@pytest.fixture
def clocks():
    return fake_cuda.Clocks()


@pytest.fixture
def module(monkeypatch, clocks):
    """The module, with the fake in place of CuPy."""
    monkeypatch.setitem(sys.modules, "cupy", fake_cuda.double(clocks))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield import_module(MODULE)
    sys.modules.pop(MODULE, None)


@pytest.fixture
def card(module, clocks):
    return module.BenchCard(clock=clocks)


def call_on(clocks, python=PYTHON, kernel=KERNEL):
    """A call that takes Python some time to start, and the card some to compute."""

    def call(i):
        clocks.now += python
        clocks.launch(kernel)

    return call


@pytest.mark.parametrize("python", [0.0, 1e-5, 3e-3, 2e-2])
def test_a_time_is_that_of_the_card_however_long_python_takes(card, clocks, python):
    call = call_on(clocks, python)
    timer = card.timer(call, "cupy")
    assert timer(call, 5, 0) == pytest.approx(KERNEL)


def test_without_work_ahead_the_time_would_be_pythons(card, clocks):
    """The planted mistake: nothing but one write before the call."""
    assert card._seconds(call_on(clocks), 1, 0, 1) > PYTHON


def test_a_call_that_waits_for_the_card_takes_the_time_of_both(card, clocks):
    def call(i):
        clocks.now += PYTHON
        clocks.launch(KERNEL)
        clocks.wait()
        clocks.now += PYTHON

    assert card.timer(call, "cupy")(call, 1, 0) >= KERNEL + PYTHON * 0.99


def test_more_than_the_second_level_cache_is_written_before_each_call(card, clocks):
    assert card.buffer.nbytes >= 4 * fake_cuda.CACHE
    call = call_on(clocks)
    timer, before = card.timer(call, "cupy"), clocks.writes
    timer(call, 4, 0)
    assert clocks.writes - before >= 4


def test_a_larger_cache_has_a_larger_buffer(module, monkeypatch, clocks):
    monkeypatch.setattr(module, "FLUSHED", 8)
    assert module.BenchCard(flushed=8).buffer.nbytes == 4 * fake_cuda.CACHE


def test_jax_is_timed_by_the_clock_of_the_processor_after_the_cache_was_made_cold(card, clocks):
    def call(i):
        assert clocks.now >= clocks.busy, "writes of the buffer are still under way"
        clocks.now += PYTHON
        clocks.launch(KERNEL)
        clocks.wait()

    assert card.timer(call, "jax")(call, 3, 0) == pytest.approx(PYTHON + KERNEL)


def test_a_copy_counts_what_is_read_and_what_is_written(card):
    rates = card.rates()
    assert rates.copy == pytest.approx(1 / fake_cuda.WRITTEN)
    assert rates.float32 == pytest.approx(2 * 8192**3 / 4e-3)
    assert rates.float64 == pytest.approx(2 * 4096**3 / 8e-3)


def test_the_peak_is_that_of_a_pool_of_its_own(card):
    cupy = sys.modules["cupy"]
    assert card.peak(lambda: cupy.alloc(300) or cupy.alloc(200), "cupy") == 500
    assert card.peak(lambda: None, "jax") is None


def test_the_facts_name_card_driver_runtime_and_cupy(card, module, monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    facts = card.facts()
    assert facts["name"] == "Double 9000"
    assert (facts["capability"], facts["driver_cuda"], facts["runtime_cuda"]) == (
        "9.0",
        "13.0",
        "12.8",
    )
    assert (facts["driver"], facts["cupy"], facts["tf32"]) == ("", "0.0 of the double", False)


def test_the_drivers_version_is_what_nvidia_smi_says(module, monkeypatch, tmp_path):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 580.159.04\necho 580.159.04\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(module.shutil, "which", lambda name: str(program))
    assert module._driver() == "580.159.04"
    program.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    assert module._driver() == ""
