"""`refssm bench --device gpu` with a stand-in for the card: rows, bars, file, mistakes."""

from dataclasses import replace

import numpy as np
import pytest
from judging import run
from timed import KERNEL, AcceptsAll, Clock, StandIn, program, row, scan, taking, work

from docs.build.bars import BARS, CARD_BARS, standings, wanted
from docs.build.benchmarks import card_tables
from refssm.bench import run as running
from refssm.bench.measuring.timing import Rates
from refssm.bench.programs import program as programs
from refssm.bench.programs.program import MIRROR, ON_GPU, REFERENCE, Absent, Judge, Program, peers
from refssm.bench.results import document, lines
from refssm.bench.results.rows import Row, WorkRows
from refssm.bench.run import Bench, BenchSettings
from refssm.bench.work.inputs import case_of, drawn
from refssm.bench.work.sizes import USUALLY, default_operators, size_of
from refssm.catalog import OPERATORS
from refssm.conformance.calling.calls.run import CalledOnce
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.number_types import number_type
from refssm.scan import LINEAR_SCAN
from refssm_gpu._launching import missing

CARD = {"name": "Double 9000", "capability": "9.0", "multiprocessors": 132, "tf32": False}
CARD |= {"memory": 80 * 2**30, "cache": 50 * 2**20, "driver": "580.1", "driver_cuda": "13.0"}
CARD |= {"runtime_cuda": "12.8", "cupy": "14.2"}


@pytest.fixture
def clock():
    return Clock(look=1e-3)


def rows(clock, monkeypatch, mirrors, own=(), judge=None, card=None, **settings):
    """The rows of linear_scan by size of the batch and label."""
    monkeypatch.setattr(running, "ours", lambda op, device: mirrors)
    made = Bench(
        BenchSettings(device="gpu", **settings),
        clock=clock,
        judge=judge or AcceptsAll(),
        sleep=lambda s: None,
        card=card or StandIn(),
    )
    found = {}
    for group in made.groups([(LINEAR_SCAN, list(own))]):
        found |= {(group.work.size["b"], r.label): (group, r) for r in group.rows}
    return found


def three(clock, function=scan):
    """The reference, the mirror of the processor, and that of the card."""
    return [
        program(taking(clock, 2.0), "reference", REFERENCE),
        program(taking(clock, 1.0), "mirror", MIRROR),
        program(function, "GPU mirror", ON_GPU),
    ]


@pytest.mark.long
def test_the_mirror_of_the_card_is_timed_by_the_card_beside_the_others(clock, monkeypatch):
    found = rows(clock, monkeypatch, three(clock))
    group, gpu = found[2, "GPU mirror"]
    assert gpu.seconds[:7] == (KERNEL,) * 7
    assert (gpu.device, gpu.peak, gpu.copies, group.base) == ("cuda", 1234, 1, gpu)
    assert gpu.latency is not None
    assert 0 < gpu.latency < 0.1
    _, mirror = found[2, "mirror"]
    assert mirror.device == ""
    assert group.times_base(mirror).value == pytest.approx(1 / KERNEL, rel=1e-2)
    assert gpu.ratio is not None


@pytest.mark.long
def test_a_batch_of_one_stands_beside_the_size_asked_for(clock, monkeypatch):
    found = rows(clock, monkeypatch, three(clock))
    assert {b for b, _ in found} == {2, 1}
    assert found[1, "GPU mirror"][1].timed


@pytest.mark.long
def test_numpy_is_called_on_a_part_of_the_batch_and_the_row_says_so(clock, monkeypatch):
    found = rows(clock, monkeypatch, three(clock), sizes="small")
    group, reference = found[2, "reference"]
    assert reference.notes == ("called on 1/2 of the batch; the time is 2 times that of the part",)
    assert group.times_base(reference).value == pytest.approx(4.0 / KERNEL, rel=1e-2)
    assert reference.peak is None
    assert found[1, "reference"][1].notes == ()


@pytest.mark.long
def test_a_short_call_of_numpy_is_not_told_from_a_part(clock, monkeypatch):
    clock.look = 1e-6
    own = three(clock)
    own[0] = program(taking(clock, 1e-3), "reference", REFERENCE)
    _, reference = rows(clock, monkeypatch, own)[2, "reference"]
    assert reference.notes == ()


@pytest.mark.long
def test_a_wrong_mirror_of_the_card_is_refused(clock, monkeypatch):
    own = three(clock, lambda a, b: scan(a, b) * np.float32(1.001))
    found = rows(clock, monkeypatch, own, judge=Judge())
    _, gpu = found[2, "GPU mirror"]
    assert gpu.status == "refused"
    assert gpu.message.startswith("FAIL linear_scan/value[complex64]: ")
    assert found[2, "mirror"][1].timed


@pytest.mark.long
def test_a_mirror_of_the_card_that_raises_is_a_row(clock, monkeypatch):
    def fails(a, b):
        raise MemoryError("linear_scan: out of memory; cuda:0 has 1.0 GB free of 80.0 GB")

    _, gpu = rows(clock, monkeypatch, three(clock, fails))[2, "GPU mirror"]
    assert (gpu.status, "cuda:0 has 1.0 GB free" in gpu.message) == ("failed", True)


@pytest.mark.long
def test_functions_of_a_card_are_not_timed_without_the_option(clock):
    own = [program(scan, "mine", framework="cupy"), program(scan, "other", device="cuda:1")]
    made = Bench(BenchSettings(), clock=clock, judge=AcceptsAll(), sleep=lambda s: None)
    (group,) = made.groups([(LINEAR_SCAN, own)])
    told = {r.label: (r.status, r.message) for r in group.rows if r.label in ("mine", "other")}
    assert set(told.values()) == {("skipped", "its arrays are on a card; `--device gpu` times it")}


def test_peers_of_a_card_are_told_their_device(monkeypatch):
    seen = []
    monkeypatch.setattr(programs, "absent", lambda name: "" if name == "torch" else f"no {name}")
    monkeypatch.setattr(programs, "every", lambda target, told: seen.append(told) or [])
    found = list(peers(LINEAR_SCAN, "gpu"))
    assert seen
    assert all(told == {"device": "cuda"} for told in seen)
    absent = {p.label.partition(":")[0] for p in found if isinstance(p, Absent)}
    assert absent == {"jax", "accelerated-scan"}
    scanned = peers(operator_named("selective_scan"), "gpu")
    assert "mamba-ssm: mamba_ssm_kernels" in [p.label for p in scanned]


def test_a_library_that_no_registry_has_is_not_told_to_be_installed_by_name():
    told = [line for line in programs.missing("gpu") if line.startswith("structured_kernels")]
    assert told == [
        "structured_kernels is not installed: S4's authors publish its source, "
        "extensions/kernels of their code"
    ]


def test_operators_of_a_run_on_a_card_have_its_mirror():
    named = [op.name for op in default_operators("large", "gpu")]
    assert set(named) == {op.name for op in OPERATORS if "gpu" not in op.lacks} & {*USUALLY}
    assert len(default_operators("small", "gpu")) >= len(named)


def large(name, *more: Row, vjp=False, gpu=1e-3, numpy=1.0):
    """A group of an operator at the size of the bars."""
    op, size = operator_named(name), size_of(operator_named(name), "large")
    made = replace(work(name, vjp), size=size.letters, dtype=size.dtype, bytes=10**9)
    mirror = row("GPU mirror", *[gpu] * 7, kind="GPU mirror", library="cupy", device="cuda")
    reference = row("reference", numpy, kind="reference", library="numpy")
    assert op.name in BARS
    return WorkRows(made, [reference, mirror, *more])


RATES = Rates(3e10, 1e11, 5e10, Rates(1.2e12, 5e13, 3e13))


def test_the_bars_of_a_card_are_met_or_missed():
    met = standings(large("linear_scan"), RATES)
    assert [(b.came, b.word) for b in met] == [("1e+03 ×", "met"), ("83%", "met")]
    missed = standings(large("linear_scan", gpu=2e-3, numpy=0.19), RATES)
    assert [(b.came, b.word) for b in missed] == [("95 ×", "missed"), ("42%", "missed")]
    assert [b.word for b in standings(large("linear_scan", vjp=True), RATES)] == ["met"]


def test_a_bar_against_kernels_that_were_not_timed_is_not_measured():
    alone = standings(large("selective_scan"), RATES)
    assert [b.word for b in alone] == ["met", "met", "not measured"]
    for seconds, word in ((1.1e-3, "met"), (0.9e-3, "missed")):
        other = row("mamba-ssm: mamba_ssm_kernels", *[seconds] * 7, library="mamba-ssm")
        found = standings(large("selective_scan", other, vjp=True), RATES)
        assert [b.word for b in found] == ["met", word]
    refused = large("linear_scan")
    refused = WorkRows(
        refused.work, [replace(r, seconds=(), status="refused") for r in refused.rows]
    )
    assert {(b.came, b.word) for b in standings(refused, RATES)} == {("", "not measured")}


def test_a_bar_without_a_comparable_kernel_says_so():
    nobody = "no comparable kernel was installed or measured"
    of_s4 = [b for b in standings(large("cauchy_kernel"), RATES) if "structured" in b.wanted]
    assert [(b.came, b.word) for b in of_s4] == [(nobody, "not measured")]


def test_there_are_no_bars_of_a_card_at_another_size_or_without_its_mirror():
    group = large("linear_scan")
    assert standings(WorkRows(replace(group.work, dtype="float32"), group.rows), RATES) == []
    assert standings(WorkRows(group.work, group.rows[:1]), RATES) == []
    assert {*CARD_BARS} <= {*BARS}
    assert dict(wanted())["selective_scan"].endswith("bandwidth; ≥ 1 × mamba-ssm")


def written(groups):
    """A run with these groups."""
    machine = {"processor": "x", "cores": 2, "system": "s", "threads": {}, "load": 0.5}
    machine |= {"versions": {"numpy": "2.4"}, "card": CARD}
    return document.Document("2026-11-23T20:00:00Z", "refssm bench", machine, RATES, groups)


def test_a_run_on_a_card_comes_back_from_its_file(tmp_path):
    group = large("linear_scan")
    waited = replace(group.rows[1], latency=2e-3)
    group = WorkRows(group.work, [group.rows[0], waited])
    document.write(tmp_path / "run.json", written([group]))
    back = document.read(tmp_path / "run.json")
    assert (back.rates, back.groups, back.machine["card"]) == (RATES, [group], CARD)
    assert [b.word for b in standings(back.groups[0], back.rates)] == ["met", "met"]


def test_the_head_and_the_rows_say_what_was_measured_on_the_card():
    run = written([large("linear_scan")])
    head = "\n".join(lines.head(dict(run.machine), run.rates))
    assert "Double 9000, compute capability 9.0, 132 multiprocessors, 80 GiB" in head
    assert "driver 580.1 for CUDA 13.0, runtime CUDA 12.8, CuPy 14.2" in head
    assert "on the card: copy 1200 GB/s (read and written), matrix product float32 50.0" in head
    text = "\n".join(lines.table(run.groups[0], run.rates))
    assert "× GPU mirror" in text
    assert "with Python" in text
    assert "1e+03 (83%)" in text  # GB/s, and its share of the card's copy


def test_the_page_says_what_was_measured_on_a_card_or_that_nothing_was():
    none = card_tables([])
    assert none.startswith("Not measured yet: ")
    assert none.count("not measured yet |") == len(USUALLY)
    assert "| `linear_scan` | ≥ 100 × NumPy; ≥ 80% of the card's copy bandwidth |" in none
    runs = [written([large("linear_scan")]), written([large("selective_scan")])]
    some = card_tables(runs)
    assert some.count("Double 9000") == 2
    nobody = "no comparable kernel was installed or measured"
    assert f"| ≥ 1 × mamba-ssm | {nobody} | not measured |" in some
    assert "× GPU mirror" in some


SENTENCES = {
    ("--device", "tpu"): "unknown device 'tpu'; wanted gpu, or nothing for the processor",
    ("--device", "gpu"): "--device gpu runs on a CUDA GPU, and there is none",
    ("--device", "gpu", "--growth"): "--growth times programs of the processor",
    ("--device", "gpu", "--layers"): "--layers times programs of the processor",
}


@pytest.mark.parametrize("arguments", SENTENCES, ids=" ".join)
def test_a_wrong_or_missing_device_is_one_sentence(monkeypatch, capfd, arguments):
    monkeypatch.setattr(missing, "_lack", lambda: "there is none")
    monkeypatch.setenv("REFSSM_GPU", "")
    result, out, err = run(capfd, "bench", *arguments)
    assert (result, out) == (4, "")
    assert SENTENCES[arguments] in err
    assert len(err.strip().splitlines()) == 1


def test_the_host_build_is_no_card(monkeypatch, capfd):
    monkeypatch.setenv("REFSSM_GPU", "host")
    result, _, err = run(capfd, "bench", "--device", "gpu")
    assert (result, "REFSSM_GPU=host runs kernels on the processor" in err) == (4, True)


@pytest.mark.long
@pytest.mark.parametrize("name", BARS)
def test_torch_peers_make_their_tensors_where_their_arguments_are(name):
    """The device "meta" has shapes only: together with a tensor of the processor it raises."""
    torch = pytest.importorskip("torch")
    for peer in peers(operator_named(name)):
        if not isinstance(peer, Program) or peer.library != "torch" or "associative" in peer.label:
            continue  # the associative scan compiles, and not for this device
        op, size = peer.op, size_of(peer.op, "small")
        run = CalledOnce(peer.found, number_type(size.dtype), False, False)
        statics = case_of(op, size).statics
        given = [torch.from_numpy(np.array(a)) for a in run.entering(drawn(op, size), statics)]
        with torch.no_grad():
            y = peer.found.forward(*(x.to("meta") for x in given), **statics)
        outputs = y if isinstance(y, tuple) else (y,)
        assert {one.device.type for one in outputs} == {"meta"}, peer.label
