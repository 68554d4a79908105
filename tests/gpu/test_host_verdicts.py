"""What the judge says of mirrors with a bug: no kernel that fails passes as a type not accepted."""

import re

import pytest
from judging import run
from kernel_judging import MIRRORED
from planting_kernels import plant

from refssm_gpu import vandermonde
from refssm_gpu._host import build, sanitize
from refssm_gpu._launching.kernel import FIELDS
from refssm_gpu.ssd import passes

VANDERMONDE = "refssm_gpu.vandermonde::vandermonde_kernel"
LAST = "__syncthreads();  // and nobody reads the tables of the last slice any more"
SOME = f"if (threadIdx.x < 100 || !is_complex<E>) {LAST}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REFSSM_GPU", "host")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "kernels"


def judged(capfd, target, *types):
    """Exit code and report of the judge in this process, where the kernels are planted."""
    how = ("-v", "--in-process", "--check", "value", *(f"--dtype={dtype}" for dtype in types))
    result, out, _ = run(capfd, "verify", target, *how)
    return result, out


@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_a_mirror_declares_its_types(op):
    assert set(FIELDS) <= set(op.implementation("gpu").__refssm__.dtypes)


def test_a_barrier_that_is_broken_in_complex_numbers_fails(folder, capfd, monkeypatch):
    folder.mkdir()
    plant(monkeypatch, folder, vandermonde, ["_SUMS"], "vandermonde.cuh", LAST, SOME)
    result, out = judged(capfd, VANDERMONDE, "float32", "complex64")
    assert result == 1
    assert "pass vandermonde_kernel/value[float32]" in out
    assert "FAIL vandermonde_kernel/value[complex64]" in out
    assert "raised HostError: vandermonde<complex64, 0, 1>: block (0, 0, 0), thread 100" in out


@pytest.mark.long
def test_a_kernel_that_one_type_cannot_compile_fails(folder, capfd, monkeypatch):
    folder.mkdir()
    broken = "if constexpr (is_complex<E>) { E::missing(); }\n" + LAST
    plant(monkeypatch, folder, vandermonde, ["_SUMS"], "vandermonde.cuh", LAST, broken)
    result, out = judged(capfd, VANDERMONDE, "float32", "complex64")
    assert "pass vandermonde_kernel/value[float32]" in out
    assert (result, "raised CompileError: vandermonde<complex64, 0, 1>" in out) == (1, True)


@pytest.mark.long
def test_the_sanitizer_names_the_line_of_a_saved_failure(folder, capfd, monkeypatch):
    folder.mkdir()
    beyond = "ssd_forward.cuh", "j >= p_in", "j > p_in"
    plant(monkeypatch, folder, passes, ["_OUTPUTS"], *beyond)
    result, out = judged(capfd, "refssm_gpu.ssd::ssd_chunked", "float32")
    assert result == 1
    told = "raised HostError: ssd_outputs<float32>: writes outside of argument 7 (float32 of shape"
    assert told in out
    file = out.partition("replay ")[2].split()[0]
    assert sanitize.main([file]) == 1
    said = capfd.readouterr().out
    assert said.startswith("AddressSanitizer: heap-buffer-overflow in ssd_outputs<float32> at ssd_")
    text = (folder / "ssd" / "ssd_forward.cuh").read_text(encoding="utf-8").splitlines()
    (line,) = [i for i, row in enumerate(text, 1) if "j > p_in" in row]
    assert int(said.rpartition(":")[2]) == line + 1


@pytest.mark.long
def test_the_sanitizer_says_nothing_of_a_failure_that_is_mended(folder, capfd, monkeypatch):
    folder.mkdir()
    with monkeypatch.context() as planted:
        plant(planted, folder, vandermonde, ["_SUMS"], "vandermonde.cuh", LAST, SOME)
        _, out = judged(capfd, VANDERMONDE, "complex64")
    file = out.partition("replay ")[2].split()[0]
    assert sanitize.main([file]) == 0
    assert capfd.readouterr().out.startswith("AddressSanitizer: nothing\npass vandermonde_kernel")


def test_the_sanitizer_wants_a_file(capfd):
    assert sanitize.main([]) == sanitize.main(["--help"]) == 4
    assert sanitize.main(["missing.npz"]) == 4
    out, err = capfd.readouterr()
    assert out.count("usage: python -m refssm_gpu._host.sanitize FAILURE.npz") == 2
    assert "missing.npz" in err


def test_without_a_compiler_a_mirror_is_one_skip(folder, capfd, monkeypatch):
    def lacking():
        raise build.NoCompiler("the host build needs g++")

    monkeypatch.setattr(build, "compiler", lacking)
    result, out, _ = run(capfd, "verify", VANDERMONDE, "--in-process")
    assert result == 5
    assert re.findall(r"^skip .*: the host build needs g\+\+$", out, re.MULTILINE) != []
    assert out.count("\nskip ") == 1
    assert out.startswith("NOTHING JUDGED: every check was skipped: ")
