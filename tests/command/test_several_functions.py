"""A file with several functions of one operator: each is judged under its own name."""

import json

import pytest
from judging import SCAN, plugin, run

TWO = (
    SCAN
    + """
from refssm.testing import implements

@implements("linear_scan")
def fast(a, b):
    y = linear_scan(a, b)
    y[..., 3:4, :] += 1
    return y

def fast_vjp(dx, a, b):
    raise RuntimeError("the gradient of fast")

def vandermonde_kernel(v, x, *, l):
    return (v[..., None, :] * np.exp(x[..., None, :] * np.arange(l)[:, None])).sum(-1)
"""
)
BROKEN = TWO + "\ndef causal_convolution(u):\n    return u\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return plugin(tmp_path, TWO)


def results(capfd, *arguments):
    """Exit code and results by id."""
    code, out, _ = run(capfd, "verify", *arguments, "--profile", "quick", "--json")
    found = json.loads(out)["results"]
    assert len({r["function"] for r in found}) == len({r["implementation"] for r in found})
    return code, {
        (r["implementation"], r["operator"], r["check"], r["function"]): r["verdict"] for r in found
    }


@pytest.mark.long
def test_each_function_is_judged_under_its_own_name(capfd, file):
    code, out, _ = run(capfd, "verify", file, "-v", "--check", "value", "--profile", "quick")
    assert code == 1
    lines = out.splitlines()
    assert any(x.startswith("pass linear_scan::linear_scan/value[float32] ") for x in lines)
    assert any(x.startswith("FAIL linear_scan::fast/value[float32] ") for x in lines)
    assert any(x.startswith("pass vandermonde_kernel::vandermonde_kernel/value[") for x in lines)
    assert f"{file}::fast   profile" in out


def test_one_named_function_has_the_usual_ids(capfd, file):
    code, out, _ = run(capfd, "verify", f"{file}::fast", "--check", "value", "--profile", "quick")
    assert code == 1
    assert "FAIL linear_scan/value[float32] " in out


@pytest.mark.long
def test_results_for_programs_have_the_function(capfd, file):
    code, found = results(capfd, file, "--check", "value")
    assert code == 1
    assert found == {
        (f"{file}::linear_scan", "linear_scan", "value", "linear_scan"): "pass",
        (f"{file}::fast", "linear_scan", "value", "fast"): "wrong",
        (
            f"{file}::vandermonde_kernel",
            "vandermonde_kernel",
            "value",
            "vandermonde_kernel",
        ): "pass",
    }


@pytest.mark.long
def test_each_function_has_its_own_gradient(capfd, file):
    _, found = results(capfd, file, "--check", "gradient")
    assert found[f"{file}::fast", "linear_scan", "gradient", "fast"] == "error"
    assert found[f"{file}::linear_scan", "linear_scan", "gradient", "linear_scan"] == "skipped"


@pytest.mark.long
def test_an_operator_given_by_name_has_all_its_functions_and_no_other(capfd, file):
    _, found = results(capfd, file, "--as", "linear_scan", "--check", "value")
    assert {function for *_, function in found} == {"linear_scan", "fast"}


@pytest.mark.long
def test_a_range_may_be_of_an_argument_that_one_function_lacks(capfd, file):
    code, out, _ = run(capfd, "verify", file, "--where", "v=1..2", "--check", "value")
    assert (code, "limited to v=1..2" in out) == (1, True)


@pytest.mark.long
def test_a_failure_is_kept_and_known_under_the_name_of_the_function(capfd, file, tmp_path):
    few = ("--check", "value", "--profile", "quick")
    code, out, _ = run(capfd, "verify", file, *few, "--write-known", "known.toml")
    again = next(line for line in out.splitlines() if "refssm replay" in line)
    code, out, _ = run(capfd, *again.split("refssm ")[1].split())
    assert (code, out.startswith("FAIL linear_scan/value[float32]")) == (1, True)
    written = (tmp_path / "known.toml").read_text("utf-8")
    assert 'id = "linear_scan::fast/value[float32]"' in written
    assert f'implementation = "{file}::fast"' in written
    reasoned = written.replace('reason = ""', 'reason = "step 3"')
    for text in (
        reasoned,
        reasoned.replace("::fast/", "/"),
        reasoned.replace("::fast/", "::f*/").replace(f"{file}::fast", file),
    ):
        (tmp_path / "known.toml").write_text(text, "utf-8")
        code, out, _ = run(capfd, "verify", file, *few, "--known", "known.toml")
        assert (code, "known linear_scan::fast/value[float32]" in out) == (0, True), text


@pytest.mark.long
def test_an_entry_of_another_function_hides_nothing(capfd, file, tmp_path):
    text = '[[known]]\nid = "linear_scan::slow/value[float32]"\nreason = "why"\n'
    (tmp_path / "known.toml").write_text(f"{text}expires = 2999-01-01\n", "utf-8")
    code, out, _ = run(capfd, "verify", file, "--check", "value", "--known", "known.toml")
    assert code == 1
    assert "known.toml: linear_scan::slow/value[float32] matches no check of this run" in out
    assert "FAIL linear_scan::fast/value[float32]" in out


def test_a_function_that_cannot_be_called_ends_the_run_before_any_is_judged(capfd, tmp_path):
    plugin(tmp_path, BROKEN)
    code, out, err = run(capfd, "verify", tmp_path / "my_ops.py")
    assert (code, "causal_convolution(u) cannot be called as causal_convolution(" in err, out) == (
        4,
        True,
        "",
    )


CONTINUED = (
    TWO
    + """
@implements("linear_scan_from")
def fast_from(a, b, x0):
    raise RuntimeError("the state of fast")

def linear_scan_from(a, b, x0):
    b = b + 0 * x0[..., None, :]
    b[..., :1, :] += a[..., :1, :] * x0[..., None, :]
    return linear_scan(a, b)
"""
)


@pytest.mark.long
def test_each_function_is_continued_by_the_one_of_its_own_name(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, found = results(capfd, plugin(tmp_path, CONTINUED), "--check", "split")
    by_name = {function: verdict for (*_, function), verdict in found.items()}
    assert by_name["linear_scan"] == by_name["linear_scan_from"] == "pass"
    assert by_name["fast"] == by_name["fast_from"] == "error"


NAMED = (
    SCAN.replace("def linear_scan", "def slow")
    + """
from refssm.testing import implements

slow = implements("linear_scan")(slow)

@implements("linear_scan")
def fast(a, b):
    return slow(a, b) + 1
"""
)


@pytest.mark.long
def test_an_operator_in_the_place_of_a_function_stands_for_its_functions(capfd, file, tmp_path):
    file = plugin(tmp_path, NAMED, "named.py")
    code, found = results(capfd, f"{file}::linear_scan", "--check", "value")
    assert code == 1
    assert {place: verdict for (place, *_), verdict in found.items()} == {
        f"{file}::slow": "pass",
        f"{file}::fast": "wrong",
    }
    _, err = run(capfd, "verify", "my_ops.py::fast", "--against", f"{file}::linear_scan")[1:]
    assert f"`slow` and `fast` both implement linear_scan; choose one: {file}::fast" in err


def test_the_older_file_must_have_one_function_of_the_operator(capfd, file):
    code, _, err = run(capfd, "verify", f"{file}::fast", "--against", file)
    assert code == 4
    assert f"`linear_scan` and `fast` both implement linear_scan; choose one: {file}::fast" in err


@pytest.mark.long
def test_two_processes_give_the_results_of_one(capfd, file):
    few = ("--check", "value", "--check", "prefix")
    assert results(capfd, file, *few, "--workers", "2") == results(capfd, file, *few)
