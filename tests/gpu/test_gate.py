import re

import pytest
from compiling import kernel, needs_compiler
from gpu.gate import compiled, nvrtc
from gpu.gate.collected import kernels
from gpu.gate.compiled import ARCHITECTURES
from gpu.gate.refusals import refusals

KERNELS = kernels()
EVERYWHERE = pytest.mark.parametrize("architecture", ARCHITECTURES)

PLANTED = {
    "spilling": (
        kernel("bad.cuh", "spilling", block=1024),
        r"spilling<float32> for sm_\d0 spills registers: \d+ bytes written and read again, ",
    ),
    "an array with a varying index": (
        kernel("bad.cuh", "indexed", registers=255),
        r"indexed<float32> for sm_\d0 has \d+ bytes of local memory a thread",
    ),
    "a double literal": (
        kernel("bad.cuh", "doubling"),
        r"doubling<float32> for sm_\d0 computes in double precision: .*mul\.f64",
    ),
    "a double literal in a half": (
        kernel("bad.cuh", "doubling", "complex64"),
        r"bad\.cuh for sm_\d0: kernels\.cu\(\d+\): error: ",
    ),
    "an approximation": (
        kernel("bad.cuh", "approximate"),
        r"approximate<float32> for sm_\d0 uses approximate instructions: div\.approx\.ftz\.f32",
    ),
    "above its ceiling": (
        kernel("bad.cuh", "greedy", registers=16),
        r"greedy<float32> for sm_\d0 needs \d\d registers a thread, its Kernel allows 16",
    ),
    "64 KB of static shared memory": (
        kernel("bad.cuh", "sharing"),
        r"bad\.cuh for sm_\d0: ptxas error.*too much shared data \(0x10000 bytes",
    ),
    "no launch bounds": (
        kernel("bad.cuh", "unbound"),
        r"unbound<float32> for sm_\d0 is bound to blocks of any number of threads, .*launches 128",
    ),
    "launched with more threads than its bounds": (
        kernel("good.cuh", "copied", block=256),
        r"copied<float32> for sm_\d0 is bound to blocks of 128 threads, its Kernel launches 256",
    ),
    "an unused variable": (
        kernel("unused.cuh", "forgetful"),
        r'unused\.cuh for sm_\d0: kernels\.cu\(\d+\): warning #177-D: variable "last" was .*: int',
    ),
    "an unknown name": (
        kernel("unknown.cuh", "unknown"),
        r'unknown\.cuh for sm_\d0: .*error: identifier "nobody_declared_this" is undefined',
    ),
}


@needs_compiler
@pytest.mark.long
@EVERYWHERE
@pytest.mark.parametrize("declared", KERNELS, ids=lambda k: k.name)
def test_every_kernel_compiles_without_warning_spill_or_too_many_registers(declared, architecture):
    assert refusals(declared, architecture) == []


def test_the_kernels_of_the_scans_are_among_those_collected():
    assert {"linear_scan", "linear_scan_back"} <= {k.name for k in KERNELS}


@needs_compiler
@EVERYWHERE
@pytest.mark.parametrize("bug", PLANTED)
def test_a_kernel_that_a_card_should_not_get_is_refused_with_a_sentence(bug, architecture):
    declared, sentence = PLANTED[bug]
    told = refusals(declared, architecture)
    assert any(re.match(sentence, why) for why in told), told
    assert not any("\n" in why for why in told)


@needs_compiler
@EVERYWHERE
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128", "float16"])
def test_a_copy_of_16_bytes_a_thread_passes(kind, architecture):
    declared = kernel("good.cuh", "copied", kind)
    assert refusals(declared, architecture) == []
    (made,) = compiled.compiled(declared, architecture).instances
    assert made.parameters == (8, 8, 8)
    assert (made.widest, made.in_flight, made.block) == (16, 16, 128)
    assert (made.shared, made.barriers, made.stack) == (0, 0, 0)
    assert made.constants >= sum(made.parameters)


@needs_compiler
def test_loads_before_the_first_use_are_counted_together():
    declared = kernel("good.cuh", "copied_by_four")
    (made,) = compiled.compiled(declared, "sm_90").instances
    assert made.in_flight == 64


@needs_compiler
@EVERYWHERE
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_reduction_inside_sin_is_no_double_precision_of_ours(kind, architecture):
    declared = kernel("good.cuh", "sines", kind)
    assert refusals(declared, architecture) == []
    (made,) = compiled.compiled(declared, architecture).instances
    assert made.stack <= made.frame == (40 if kind == "float64" else 32)


@needs_compiler
def test_a_kernel_that_says_so_may_compute_in_double_precision():
    assert refusals(kernel("bad.cuh", "doubling", double_inside=True), "sm_90") == []


@needs_compiler
def test_a_kernel_without_instances_is_refused():
    declared = kernel("good.cuh", "copied")
    empty = type(declared)(declared.source, "copied", (), 128, 64)
    (told,) = refusals(empty, "sm_80")
    assert told.endswith("copied has no instances, so nothing was compiled")


@needs_compiler
def test_a_record_is_read_again_and_a_damaged_one_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("REFSSM_CACHE_DIR", str(tmp_path))
    declared, calls = kernel("good.cuh", "copied"), []
    compile = nvrtc.compiled

    def counted(*arguments):
        calls.append(arguments)
        return compile(*arguments)

    monkeypatch.setattr(nvrtc, "compiled", counted)
    first = compiled.compiled(declared, "sm_90")
    assert compiled.compiled(declared, "sm_90") == first
    assert len(calls) == 1
    (record,) = (tmp_path / "nvrtc").glob("*.json")
    record.write_text(record.read_text(encoding="utf-8")[:40], encoding="utf-8")
    assert compiled.compiled(declared, "sm_90") == first
    assert len(calls) == 2


def test_without_the_compiler_one_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(nvrtc, "PACKAGE", "nvidia-cuda-nvrtc-absent")
    with pytest.raises(
        nvrtc.NoCompiler, match=r"is not installed: pip install nvidia-cuda-nvrtc=="
    ):
        nvrtc.version()


@pytest.mark.parametrize(
    "log",
    ["a line of a kind that nobody has seen", "nvrtc: warning: something", "x.cu(1): error: y"],
)
def test_what_the_log_says_beside_sizes_is_a_complaint(log):
    assert compiled.complaints(f"ptxas info    : 0 bytes gmem\n{log}\n") == [log]
