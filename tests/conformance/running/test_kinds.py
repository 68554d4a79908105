"""`kinds="complex"`: functions of complex numbers only get no real array, in no check."""

import numpy as np
import pytest
from judging import judged, plugin, run, scan

from refssm.cauchy import CAUCHY_KERNEL
from refssm.scan import LINEAR_SCAN

ONLY_COMPLEX = """
import numpy as np

def linear_scan(a, b):
    assert a.dtype.kind == b.dtype.kind == "c", "a real array"
    x = np.empty(np.broadcast_shapes(a.shape, b.shape), b.dtype)
    state = 0
    for k in range(b.shape[-2]):
        state = a[..., k, :] * state + b[..., k, :]
        x[..., k, :] = state
    return x
"""


def always_complex(a, b):
    """Right, but an answer to real arguments is complex, too."""
    return scan(a, b) + np.complex64(0)


def kinds_seen(name, reference, **declared):
    """The kinds of numbers that a function gets in all checks, argument by argument, and lines."""
    seen = set()

    def function(*arrays):
        seen.add("".join(a.dtype.kind for a in arrays))
        return reference(*arrays)

    lines = judged(name, function, profile="default", cases=10, **declared)
    return seen, [r for r in lines if r.verdict != "skipped"]


@pytest.mark.long
@pytest.mark.parametrize("declared", [{"kinds": "complex"}, {"dtypes": ("complex64",)}])
def test_a_function_of_complex_numbers_gets_no_real_array(declared):
    seen, lines = kinds_seen("linear_scan", scan, **declared)
    assert seen == {"cc"}
    assert {r.dtype for r in lines} <= {"complex64", "complex128"}
    assert {r.verdict for r in lines} == {"pass"}


@pytest.mark.long
def test_without_the_declaration_real_and_complex_arguments_are_mixed():
    seen, lines = kinds_seen("linear_scan", scan)
    assert {"ff", "cc", "cf", "fc"} <= seen
    assert "float32" in {r.dtype for r in lines}


def test_an_operator_without_real_types_mixes_kinds_until_it_is_told_otherwise():
    cauchy = CAUCHY_KERNEL.reference
    seen, _ = kinds_seen("cauchy_kernel", cauchy, dtypes=("complex64",))
    assert seen == {"ccc", "fcc"}
    seen, lines = kinds_seen("cauchy_kernel", cauchy, kinds="complex")
    assert seen == {"ccc"}
    assert {r.verdict for r in lines} == {"pass"}


def test_a_complex_result_is_wrong_for_real_arguments_unless_none_may_be_real():
    (line,) = judged("linear_scan", always_complex, "value")
    assert line.verdict == "wrong"
    assert "want float32" in line.message
    (line,) = judged("linear_scan", always_complex, "value", kinds="complex")
    assert (line.verdict, line.dtype) == ("pass", "complex64")


def test_gradients_are_asked_of_complex_arguments_only():
    reference = LINEAR_SCAN.bare_vjp

    def vjp(dx, a, b):
        return tuple(g + np.complex64(0) for g in reference(dx, a, b))

    def gradient(**declared):
        lines = judged("linear_scan", scan, "gradient", vjp=vjp, profile="default", **declared)
        return {r.dtype: r.verdict for r in lines}

    assert gradient(kinds="complex", cases=10) == {"complex64": "pass", "complex128": "pass"}
    assert gradient(cases=10)["float32"] == "wrong"
    assert gradient(cases=10)["complex64"] == "wrong"  # a real argument has a real gradient


@pytest.mark.long
def test_the_command_line_and_the_table_declare_it_too(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, ONLY_COMPLEX)
    code, out, _ = run(capfd, "verify", file, "--kinds", "complex", "--profile", "quick")
    assert code == 0
    assert "linear_scan: complex numbers only" in out
    assert "float32" not in out
    code, out, _ = run(capfd, "verify", file, "--kinds", "complex", "--dtype", "float32")
    assert code == 5
    assert "declared only for complex numbers" in out
    (tmp_path / "pyproject.toml").write_text('[tool.refssm]\nkinds = "complex"\n', "utf-8")
    code, out, _ = run(capfd, "verify", file, "--profile", "quick", "--check", "value")
    assert code == 0
    assert "pyproject.toml: kinds complex" in out
    code, out, err = run(capfd, "verify", file, "--kinds", "real")
    assert code == 4
    assert "unknown kinds 'real'; wanted one of any, complex" in out + err


def test_saved_real_arrays_are_refused_in_one_sentence(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, ONLY_COMPLEX)
    np.savez("batch.npz", a=np.ones((3, 2), np.float32), b=np.ones((3, 2), np.float32))
    code, out, err = run(capfd, "verify", file, "--kinds", "complex", "--inputs", "batch.npz")
    assert code == 4
    assert "batch.npz: its numbers are real, and linear_scan is declared for complex" in out + err
