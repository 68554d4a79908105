"""The C++ and JavaScript examples, built and judged if their tools are installed."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exchanging import written
from judging import run

pytestmark = pytest.mark.outside

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SCAN = ("--as", "linear_scan", "--profile", "quick", "--dtype", "float32")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The C++ examples as compiled programs."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("cpp")
    for name in ("scan", "scan_wrong"):
        source = EXAMPLES / "cpp" / f"{name}.cpp"
        strict = ["-O1", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic"]
        subprocess.run(["g++", *strict, "-o", folder / name, source], check=True)
    return folder


@pytest.fixture(scope="module")
def node():
    """The Node.js command, if it is installed."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    return f"node {EXAMPLES / 'javascript' / 'scan.mjs'} {{case}}"


def judged(capfd, command, *options):
    """Exit code and results by check[dtype] of `verify --exec`."""
    result, out, err = run(capfd, "verify", "--json", "--exec", command, *options)
    assert err == ""
    results = {r["check"] + f"[{r['dtype']}]": r for r in json.loads(out)["results"]}
    return result, results


def test_the_scan_in_cpp_passes_with_its_gradient(capfd, built):
    checks = [option for c in ("value", "gradient", "nan", "prefix") for option in ("--check", c)]
    types = ("--dtype", "complex64", "--dtype", "float64", "--vjp")
    result, results = judged(capfd, f"{built}/scan {{case}}", *SCAN, *types, *checks)
    assert result == 0
    assert {r["verdict"] for r in results.values()} == {"pass"}
    assert {r["grade"] for r in results.values()} == {"A"}
    assert {"value[complex64]", "gradient[float64]", "prefix[float32]"} <= {*results}


def test_the_lost_carry_of_the_wrong_scan_is_told_as_the_page_shows(capfd, built, monkeypatch):
    monkeypatch.chdir(built)
    page = (EXAMPLES.parent / "other_languages.md").read_text(encoding="utf-8")
    command, _, shown = page.partition("$ refssm verify ")[2].partition("\n")
    result, out, _ = run(capfd, "verify", *shlex.split(command))
    assert result == 1
    shown = [line.partition("   (1 of")[0] for line in shown.split("```")[0].splitlines()]
    lines = [line for line in shown if line and not line.startswith("FAIL")]
    assert len(lines) == 5
    assert [line for line in lines if line not in out] == []
    assert "FAIL linear_scan/value[float32]" in out


def test_the_wrong_scan_is_found_in_a_folder_of_cases_too(capfd, built, tmp_path):
    options = ("--profile", "quick", "--dtype", "float32", "--check", "value", "--check", "nan")
    folder = written(tmp_path / "cases", "--operator", "linear_scan", *options)
    judge = ("cases", "judge", folder, "--exec")
    assert run(capfd, *judge, f"{built}/scan {{case}}")[0] == 0
    result, out, _ = run(capfd, *judge, f"{built}/scan_wrong {{case}}")
    assert result == 1
    assert "FAIL linear_scan/value[float32]" in out
    assert "64, 0]: got " in out
    short = [p.parent for p in folder.glob("*/x.npy") if np.load(p).shape[1] == 1]
    assert short  # the program's own outputs remain for its author


def test_the_gradient_of_the_wrong_scan_is_right_and_a_passing_check_says_so(capfd, built):
    options = (*SCAN, "--vjp", "--check", "gradient")
    assert judged(capfd, f"{built}/scan_wrong {{case}}", *options)[0] == 0


def test_a_type_that_the_scan_in_cpp_has_not_is_declined(capfd, built):
    options = ("--as", "linear_scan", "--check", "value", "--dtype", "bfloat16")
    result, results = judged(capfd, f"{built}/scan {{case}}", *options)
    assert result == 5
    assert results["value[bfloat16]"]["message"].startswith("declined all")


def test_the_header_of_the_cpp_examples_refuses_files_of_another_type(capfd, built, tmp_path):
    options = ("--profile", "quick", "--dtype", "float32", "--check", "value")
    folder = written(tmp_path / "cases", "--operator", "linear_scan", *options)
    case = next(folder.glob("*-001"))
    text = (case / "case.txt").read_text(encoding="utf-8")
    (case / "case.txt").write_text(text.replace("float32", "float64"), encoding="utf-8")
    ended = subprocess.run([built / "scan", case], capture_output=True, encoding="utf-8")
    assert (ended.returncode, "a.npy is not of type <f8" in ended.stderr) == (1, True)
    assert subprocess.run([built / "scan"], check=False).returncode == 2


def test_the_scan_in_javascript_passes(capfd, node):
    result, results = judged(capfd, node, *SCAN, "--check", "value", "--where", "l=60..70")
    assert (result, results["value[float32]"]["grade"]) == (0, "A")


def test_the_scan_in_javascript_declines_complex_numbers(capfd, node):
    options = ("--as", "linear_scan", "--profile", "quick", "--dtype", "complex64")
    result, results = judged(capfd, node, *options, "--check", "zero")
    assert result == 5
    assert results["zero[complex64]"]["message"].startswith("declined all")
