"""What the tests of this folder run on: which of them skip on a card, and which kernels are run."""

import ast
import sys
from pathlib import Path

import card
import fake_cuda
import host_only
import launching
import numpy as np
import offsets
import pytest
from compiling import needs_compiler
from gpu.gate import compiled
from launching import unlaunched
from offsets import FACTS

from refssm.catalog import OPERATORS
from refssm.scan import LINEAR_SCAN

HERE = Path(__file__).parent
PLANT = (
    "def test_x(monkeypatch, tmp_path, bug):\n    plant(monkeypatch, tmp_path, module, [], '')\n"
)


@pytest.mark.parametrize(
    ("file", "source", "parameters", "why"),
    [
        ("test_host_launch.py", "", {}, "it is about the host build"),
        ("test_scan_kernels.py", PLANT, {}, "may end the card's context"),
        ("test_ssd_kernels.py", "def test_a_planted_bug_in_a():", {}, "may end the card's context"),
        ("test_vandermonde_kernels.py", "settings(only=(b,))", {}, "runs chosen blocks alone"),
        ("test_scan_kernels.py", "", {"order": 7}, "threads of a card have no order"),
        ("test_diagonal_kernels.py", "assert len(now.counts) == 2", {}, "counts launches"),
    ],
)
def test_a_test_of_the_host_build_skips_on_a_card_with_a_reason(file, source, parameters, why):
    told = host_only.reason(file, source, parameters)
    assert told.startswith("only on the host build: ")
    assert why in told


def test_tests_of_values_run_on_a_card():
    for file in ("test_scan_kernels.py", "test_mirrors_judged.py", "test_on_a_card.py"):
        assert host_only.reason(file, "assert np.array_equal(x, y)", {"order": 0, "n": 3}) == ""


def test_every_file_of_the_host_build_still_exists():
    names = [path.name for path in HERE.glob("test_*.py")]
    for start in host_only.FILES:
        assert any(name.startswith(start) for name in names), start


def test_files_that_import_the_host_build_are_of_it_or_take_its_knobs_only():
    """A new file that launches on the host alone would fail on a card: it must be in FILES."""
    knobs = {"HostError", "settings"}
    for path in HERE.glob("test_*.py"):
        if host_only.reason(path.name, "", {}):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                ("refssm_gpu._host", "hosted", "gpu.hosted")
            ):
                assert {alias.name for alias in node.names} <= knobs, path.name


def test_every_kernel_is_launched_for_the_sanitizers_of_a_card():
    _, missed = unlaunched(op for op in OPERATORS if "gpu" not in op.lacks)
    assert missed == []


@pytest.fixture
def clocks(monkeypatch):
    """The two clocks of a fake CuPy, which is in place of the real one."""
    made = fake_cuda.Clocks()
    monkeypatch.setitem(sys.modules, "cupy", fake_cuda.double(made))
    monkeypatch.setattr(card, "perf_counter", made)
    card._stream.cache_clear()
    yield made
    card._stream.cache_clear()


@pytest.mark.parametrize("python", [1e-6, 1e-3, 0.1])
def test_a_call_that_waits_for_its_stream_is_told_from_one_that_does_not(clocks, python):
    def queues():
        clocks.now += python
        clocks.launch(1e-3)

    def waits():
        queues()
        clocks.wait()

    assert card.returns_early(queues)
    assert not card.returns_early(waits)


@needs_compiler
@pytest.mark.parametrize("number", [9, 10])
def test_the_planted_kernels_for_the_sanitizers_of_a_card_compile(number):
    text = launching.planted_text(number)
    assert 'number.cuh"' not in text
    (made,) = compiled.of_source(text, ["chunked_scan<float>"], "sm_90").instances
    assert made.block == 128


def test_a_kernel_that_nothing_launches_is_named():
    launches, missed = unlaunched([LINEAR_SCAN])
    assert launches > 0
    assert "convolution/short_convolution.cuh: short_convolution" in missed
    assert not any("linear_scan" in name for name in missed)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.__name__)
def test_the_facts_by_which_a_card_shows_its_offsets_hold_at_small_sizes(fact):
    for far in (4, 32):
        assert fact(np, far)


@pytest.mark.parametrize("fact", [offsets.scan, offsets.scan_back, offsets.convolution])
def test_a_row_in_the_place_of_another_is_seen(monkeypatch, fact):
    whole = offsets.rows

    def swapped(*given):
        return whole(*given)[[0, 0, 1]]

    monkeypatch.setattr(offsets, "rows", swapped)
    assert not fact(np, 32)
