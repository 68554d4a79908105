import sys

import pytest
from compiling import kernel, needs_compiler
from gpu.gate import __main__ as gate
from gpu.gate import nvrtc
from gpu.gate import traffic as expected
from gpu.gate.collected import kernels
from gpu.gate.expected import CARDS, Expected
from gpu.gate.recording import Launch
from typer.testing import CliRunner

from refssm_gpu._launching.kernel import BOUNDS


@pytest.fixture
def alone(monkeypatch):
    """The gate's command in this process, for these kernels only."""
    monkeypatch.setattr(gate, "cpu_count", lambda: 1)
    return lambda *declared: monkeypatch.setattr(gate, "kernels", lambda: declared)


@needs_compiler
def test_the_command_shows_what_each_instance_needs_on_each_architecture(alone, capsys):
    alone(kernel("good.cuh", "copied"))
    assert gate.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines if "NVRTC" in line] == ["sm_80", "sm_90"]
    rows = [line.split() for line in lines if line.startswith("copied<float32>")]
    assert [row[2:] for row in rows] == [["0", "16", "64"], ["0", "16", "64"]]
    assert lines[-1] == "nothing is refused"


@needs_compiler
def test_the_command_fails_where_a_kernel_is_refused(alone, capsys):
    alone(kernel("good.cuh", "copied"), kernel("bad.cuh", "doubling"))
    assert gate.main() == 1
    assert capsys.readouterr().out.count("refused: doubling<float32> for sm_") == 2


@needs_compiler
def test_the_command_compiles_only_the_families_and_kernels_that_it_is_given(alone, capsys):
    alone(kernel("good.cuh", "copied"), kernel("bad.cuh", "doubling"))
    assert gate.main(["copied"]) == 0
    assert "doubling" not in capsys.readouterr().out
    assert gate.main(["planted_gate"]) == 1  # a family is a folder of kernels


def test_a_name_of_no_family_or_kernel_is_a_usage_error_with_the_families(capsys):
    assert gate.main(["scan", "scam"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("no family or kernel 'scam'; families: cauchy, convolution, ")


def test_help_is_printed_and_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(gate, "main", pytest.fail)
    result = CliRunner().invoke(gate.app, ["--help"])
    assert result.exit_code == 0
    assert "Families (scan, ssd) or kernels" in result.output


@needs_compiler
@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown_on_a_terminal_only(alone, capsys, monkeypatch, terminal):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    alone(kernel("good.cuh", "copied"))
    assert gate.main() == 0
    first, *progress = capsys.readouterr().err.splitlines()
    assert first.startswith("compiling 1 kernel for sm_80 and sm_90 with NVRTC ")
    assert any("compiling kernels" in line for line in progress) == terminal


def test_the_command_says_that_the_compiler_is_missing(alone, capsys, monkeypatch):
    monkeypatch.setattr(nvrtc, "PACKAGE", "nvidia-cuda-nvrtc-absent")
    alone(kernel("good.cuh", "copied"))
    assert gate.main() == 2
    assert capsys.readouterr().err.startswith("NVRTC, CUDA's compiler, is not installed: pip")


@needs_compiler
@pytest.mark.long
def test_the_model_shows_function_and_vjp_and_says_that_nothing_was_measured(capsys):
    assert expected.main(["linear_scan", "linear_step"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = "Expected share of peak bandwidth where memory bounds, else what does: a model, "
    assert lines[0] == f"{head}nothing was measured."
    rows = {line.split()[0]: line.split() for line in lines[2:]}
    assert list(rows) == ["linear_scan", "linear_scan_vjp", "linear_step", "linear_step_vjp"]
    needed = 3 * 8 * 4096 * 256 * 8 / 1e6
    assert rows["linear_scan"][6] == f"{needed:.1f}"
    assert all(0 < float(share) <= 1 for share in rows["linear_scan"][-3:])
    assert rows["linear_step"][-2:] == ["array", "code"]


@needs_compiler
def test_a_call_bound_by_flops_has_no_share_of_bandwidth_in_the_table(capsys):
    assert expected.main(["cauchy_kernel"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["cauchy_kernel", "cauchy_kernel_vjp"]
    assert [row[-3:] for row in rows] == [["flops"] * 3] * 2


def test_the_model_says_that_the_compiler_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(nvrtc, "PACKAGE", "nvidia-cuda-nvrtc-absent")
    assert expected.main(["linear_scan"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("NVRTC, CUDA's compiler, is not installed: pip")
    assert said.err.count("\n") == 1


def test_every_kernel_declares_what_bounds_it():
    assert {k.name: k.bound for k in kernels() if k.bound not in BOUNDS} == {}
    assert kernel("good.cuh", "copied").bound not in BOUNDS  # what forgets to would be seen


@pytest.mark.parametrize(
    ("declared", "bound"),
    [
        (("memory", "memory"), "memory"),
        (("memory", "flops", "launch"), "flops"),
        (("launch", "memory"), "launch"),
    ],
)
def test_a_call_is_bound_by_memory_only_if_each_of_its_kernels_is(declared, bound):
    made = [kernel("good.cuh", "copied", bound=b) for b in declared]
    launches = tuple(Launch(k, ("float32",), (1,), 0, 1, 1) for k in made)
    assert Expected(CARDS[0], 1, launches, 1.0).bound == bound


def test_an_operator_without_a_gpu_mirror_is_named(capsys):
    assert expected.main(["hippo_matrix_of_nobody"]) == 2
    assert capsys.readouterr().err == "no GPU mirror of hippo_matrix_of_nobody\n"
