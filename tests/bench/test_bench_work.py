import sys

import numpy as np
import pytest

from docs.build.bars import BARS, BESIDE
from refssm.bench.measuring.accuracy import Truth
from refssm.bench.measuring.timing import available, described, last_cache, peak_of, rates
from refssm.bench.work.flops import flops
from refssm.bench.work.inputs import (
    beginning,
    case_of,
    cotangents,
    drawn,
    members,
    of_batch,
    repeated,
)
from refssm.bench.work.sizes import SIZES, USUALLY, alone, default_operators, of_length, size_of
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.selective_scan import SELECTIVE_SCAN

PAPER = {
    "vandermonde_kernel_real": "d=256 l=16384 n=32",
    "cauchy_kernel": "d=64 l=16384 n=64",
    "resolvent_at_roots": "d=64 l=16384 n=64",
    "dplr_kernel": "d=64 l=16384 n=64 r=1",
    "linear_scan": "b=8 l=4096 n=256",
    "selective_scan": "b=2 g=1 d=512 l=2048 n=16",
    "mamba_scan": "b=2 g=1 d=512 l=2048 n=16",
    "ssd_chunked": "b=1 g=1 h=24 l=4096 p=64 n=128 chunk=64",
    "short_convolution": "b=4 d=1024 l=4096 t=4",
    "causal_convolution": "b=1 d=256 l=16384",
    "hope_transfer": "d=256 l=16384 n=64",
    **dict.fromkeys(
        ("gated_delta_rule_chunked", "kimi_delta_rule_chunked"),
        "b=1 g=1 h=8 l=4096 p=128 n=128 chunk=64",
    ),
    **dict.fromkeys(("gated_delta_step", "kimi_delta_step"), "b=64 g=1 h=8 p=128 n=128"),
    "mamba2_scan": "b=1 g=1 h=24 l=4096 p=64 n=128 dt_min=0.0 dt_max=1024.0",
    "mamba2_step": "b=64 g=1 h=24 p=64 n=128 dt_min=0.0 dt_max=1024.0",
}


@pytest.mark.parametrize("name", PAPER)
def test_the_sizes_of_the_paper_are_those_of_the_page(name):
    assert str(size_of(operator_named(name), "paper")) == PAPER[name]


def test_every_operator_with_a_bar_has_a_size_and_the_other_way_round():
    assert {*USUALLY} < {*BARS}
    assert {*PAPER} == {*BARS, *BESIDE, "mamba2_step"}
    assert {op.name for op in default_operators("paper")} == {*USUALLY}
    assert {op.name for op in default_operators("small")} == {
        op.name for op in OPERATORS if "jit" not in op.lacks
    }


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_every_operator_can_be_called_at_its_small_size(op):
    size = size_of(op, "small")
    arrays, statics = drawn(op, size), case_of(op, size).statics
    op.sizes(*arrays, **statics)
    assert all(np.isfinite(a).all() for a in arrays)
    again = drawn(op, size)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, again, strict=True))


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_every_operator_has_a_size_of_each_kind(op):
    for which in SIZES:
        assert all(n >= 1 for n in {**size_of(op, which).batch, **size_of(op, which).core}.values())
    assert flops(op.name, size_of(op, "paper"), False) != 0
    if "l" in size_of(op, "small").core and "jit" not in op.lacks:
        assert of_length(op, 1024).core["l"] == 1024


def test_a_vjp_counts_as_three_forward_calls():
    size = size_of(SELECTIVE_SCAN, "paper")
    once = flops("selective_scan", size, False) or 0
    assert once == 2 * 512 * 2048 * (7 * 16 + 1)
    assert flops("selective_scan", size, True) == 3 * once


def test_the_inputs_are_those_of_models():
    size = size_of(SELECTIVE_SCAN, "small")
    _, dt, A, _, _ = drawn(SELECTIVE_SCAN, size)
    assert 1e-3 <= dt.min() < dt.max() <= np.float32(0.1)
    assert np.array_equal(A[0, 0], -np.arange(1, 17, dtype=np.float32))


def test_a_part_of_the_work_has_fewer_members_and_a_shorter_beginning():
    size = size_of(SELECTIVE_SCAN, "small")
    arrays = drawn(SELECTIVE_SCAN, size)
    assert members(size, 1) == {"d": 1, "b": 1, "g": 1}
    assert members(size, 16) == {"d": 8, "b": 2, "g": 1}
    part = of_batch(SELECTIVE_SCAN, arrays, members(size, 4))
    assert [a.shape for a in part] == [(1, 1, 4, 256)] * 2 + [(1, 4, 16)] + [(1, 1, 1, 256, 16)] * 2
    short, _ = beginning(SELECTIVE_SCAN, part, {}, 32)
    assert [a.shape for a in short] == [(1, 1, 4, 32)] * 2 + [(1, 4, 16)] + [(1, 1, 1, 32, 16)] * 2
    (heads,) = cotangents(SELECTIVE_SCAN, size, short, {})
    assert heads.shape == (1, 1, 4, 32)


def test_a_keyword_that_is_the_length_is_shortened_too():
    kernel = operator_named("vandermonde_kernel")
    size = size_of(kernel, "small")
    arrays, statics = drawn(kernel, size), case_of(kernel, size).statics
    assert beginning(kernel, arrays, statics, 32)[1] == {"l": 32}


def test_the_truth_is_of_a_shorter_beginning_if_all_of_it_takes_too_long():
    size = size_of(SELECTIVE_SCAN, "small")
    size = type(size)(size.batch, {**size.core, "l": 2048}, size.parameters, size.dtype)
    arrays = drawn(SELECTIVE_SCAN, size)
    looks = iter(range(0, 10**6, 3))  # three seconds for each look
    truth = Truth(SELECTIVE_SCAN, arrays, {}, size, vjp=False)
    assert truth.compute(lambda: float(next(looks)))
    assert truth.at == "one member of each batch axis, l=256"
    y = SELECTIVE_SCAN.reference(*truth.arrays)
    found = truth.accuracy((y,))
    assert 0 <= found.ratio < 1
    assert (truth.accuracy((y * np.float32(1.001),)).relative or 0) > 5e-4


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of a process")
def test_the_peak_of_a_call_has_its_outputs_and_what_it_frees():
    def call():
        gone = np.ones(4 * 2**20)
        return gone[: 2**20].copy()

    call()
    # 32 MiB and 8 MiB; the system counts pages of each thread in steps
    assert 39 * 2**20 <= (peak_of(call) or 0) < 60 * 2**20
    assert (peak_of(lambda: None) or 0) < 4 * 2**20


def test_where_nothing_counts_memory_there_is_no_peak(monkeypatch, tmp_path):
    from refssm.bench.measuring import timing

    monkeypatch.setattr(timing, "CLEAR", tmp_path / "absent" / "clear_refs")
    monkeypatch.setattr(timing, "MEMINFO", tmp_path / "absent")
    monkeypatch.setattr(timing, "CACHE", tmp_path / "absent")
    assert peak_of(lambda: 1 / 0) is None
    assert available() == timing.UNKNOWN
    assert last_cache() == timing.USUAL_CACHE


def test_the_machine_has_rates_and_a_name():
    from timed import Clock

    clock = Clock()
    found = rates(2**12, 8, clock)  # a look at the clock takes a microsecond
    assert found.copy == pytest.approx(2 * 2**12 / 1e-6, rel=1e-3)
    assert found.float32 == pytest.approx(2 * 8**3 / 1e-6, rel=1e-3)
    assert found.matrix("complex128") == found.float64
    machine = described(peers=False)
    assert machine["cores"] >= 1
    assert {"numpy", "numba", "python"} <= {*machine["versions"]}
    assert machine["processor"]


@pytest.mark.parametrize("name", BARS)
def test_members_drawn_once_and_repeated_have_the_shapes_of_the_larger_batch(name):
    op = operator_named(name)
    whole = size_of(op, "small")
    part = alone(whole)
    few, many = drawn(op, part), drawn(op, whole)
    made = repeated(op, few, part, whole)
    assert [a.shape for a in made] == [a.shape for a in many]
    assert [a.dtype for a in made] == [a.dtype for a in many]
    for a, whole_one in zip(few, made, strict=True):
        first = whole_one[tuple(slice(n) for n in a.shape)]
        assert np.array_equal(first, a)


def test_a_batch_of_one_is_the_size_of_papers_otherwise():
    one, paper = (size_of(SELECTIVE_SCAN, which) for which in ("one", "paper"))
    assert {*one.batch.values()} == {1}
    assert (one.core, one.parameters, one.dtype) == (paper.core, paper.parameters, paper.dtype)
