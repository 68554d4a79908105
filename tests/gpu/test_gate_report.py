import pytest
from compiling import kernel, needs_compiler

from refssm.bench import expected
from refssm_gpu._gate import __main__ as gate
from refssm_gpu._gate import nvrtc


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
    assert lines[0] == "Expected share of peak bandwidth: a model, nothing was measured."
    rows = {line.split()[0]: line.split() for line in lines[2:]}
    assert list(rows) == ["linear_scan", "linear_scan_vjp", "linear_step", "linear_step_vjp"]
    needed = 3 * 8 * 4096 * 256 * 8 / 1e6
    assert rows["linear_scan"][6] == f"{needed:.1f}"
    assert all(0 < float(share) <= 1 for share in rows["linear_scan"][-3:])
    assert rows["linear_step"][-2:] == ["array", "code"]


def test_an_operator_without_a_gpu_mirror_is_named(capsys):
    assert expected.main(["hippo_matrix_of_nobody"]) == 2
    assert capsys.readouterr().err == "no GPU mirror of hippo_matrix_of_nobody\n"
