"""The command from a user's view: exit codes, sentences, lines, JSON."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from judging import SCAN as RIGHT
from judging import plugin, run

from refssm.conformance.running import patience

ROOT = Path(__file__).parents[2]
WRONG = ROOT / "docs/examples/chunked_scan_wrong.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_a_right_scan_passes_with_exit_code_0(folder, capfd):
    result, out, _ = run(capfd, "verify", "-v", plugin(folder, RIGHT))
    assert result == 0
    assert "pass linear_scan/value[float32]" in out
    assert "skip linear_scan/split[float32] " in out
    assert "needs linear_scan_from" in out
    assert "not tested: " in out


@pytest.mark.long
def test_the_wrong_example_fails_with_place_size_and_a_way_to_see_it_again(folder, capfd):
    result, out, _ = run(capfd, "verify", WRONG, "--check", "value")
    assert result == 1
    assert "FAIL linear_scan/value[float32]" in out
    assert "grade F" in out
    assert "entry with l = 64 wrong" in out
    assert "equally wrong in float64: the formula is wrong, this is not rounding" in out
    assert "smallest: l=65 n=1" in out
    again = next(line for line in out.splitlines() if "again: " in line).split("refssm ")[1]
    result, out, _ = run(capfd, *again.split())
    assert result == 1
    assert "worst x[0, 64, 0]: got 1, want 65" in out


@pytest.mark.long
def test_json_is_one_document_with_the_promised_keys(folder, capfd):
    result, out, _ = run(capfd, "verify", WRONG, "--json", "--profile", "quick", "--seed", 3)
    document = json.loads(out)
    assert result == 1
    assert document["seed"] == 3
    keys = "operator implementation check dtype verdict grade ratio bits examples declined seconds"
    assert {*keys.split(), "message", "counterexample"} <= set(document["results"][0])
    verdicts = {r["check"]: r["verdict"] for r in document["results"]}
    assert verdicts["value"] == "wrong"
    assert verdicts["alias"] == "pass"


@pytest.mark.long
def test_the_same_seed_gives_the_same_verdicts(folder, capfd, monkeypatch):
    monkeypatch.setattr(patience, "EXPLAIN", np.inf)  # a busy machine is slow

    def told():
        _, out, _ = run(capfd, "verify", WRONG, "--json", "--seed", 7, "--check", "value")
        return [{**r, "seconds": 0} for r in json.loads(out)["results"]]

    assert told() == told()


USAGE = {
    "no such file": ("verify nowhere.py", "nowhere.py: no such file"),
    "no such module": ("verify no.such.module", "no such file, and no module of that name"),
    "nothing named": ("verify", "nothing to judge"),
    "unknown option": ("verify --frob", "No such option"),
    "unknown command": ("verfy x.py", "has no command `verfy`; did you mean verify?"),
    "unknown check": (
        "verify my_ops.py --check vlaue",
        "unknown check 'vlaue'; wanted one of value",
    ),
    "unknown type": ("verify my_ops.py --dtype float8", "unknown type 'float8'"),
    "unknown profile": (
        "verify my_ops.py --profile slow",
        "unknown profile 'slow'; wanted one of quick",
    ),
    "unknown subject": (
        "verify --subject numpy",
        "unknown subject 'numpy'; wanted one of jit, scipy",
    ),
    "unknown operator": (
        "verify my_ops.py::linear_scan --as liner_scan",
        "did you mean linear_scan?",
    ),
    "unknown function": ("verify my_ops.py::linear_scam", "has no function `linear_scam`"),
    "type of no use": (
        "verify refssm.jit.cauchy::cauchy_kernel --dtype float32",
        "judged only in complex64, complex128",
    ),
    "no npz": ("verify my_ops.py --inputs my_ops.py", "not a readable .npz file"),
    "show nothing": ("show cauchy", "did you mean cauchy_kernel?"),
    "negative seed": ("verify my_ops.py --seed -1", "--seed"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", USAGE)
def test_a_usage_error_is_one_sentence_and_exit_code_4(folder, capfd, what):
    plugin(folder, RIGHT)
    arguments, sentence = USAGE[what]
    result, _, err = run(capfd, *arguments.split())
    assert result == 4
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


MALFORMED = {
    "syntax error": ("def linear_scan(a, b: return", "SyntaxError"),
    "import error": (
        "import nosuchlibrary",
        "ModuleNotFoundError: No module named 'nosuchlibrary'",
    ),
    "error at import": ("1 / 0", "ZeroDivisionError: division by zero (my_ops.py:1)"),
    "exit at import": ("import sys; sys.exit(3)", "SystemExit"),
    "no catalog name": ("def scan(a, b): return a", "it defines scan"),
    "nothing at all": ("", "it defines no function"),
    "not a function": ("linear_scan = 3", "no function has the name of an operator"),
    "imported only": ("from refssm import linear_scan", "no function has the name of an operator"),
    "too few arguments": ("def linear_scan(a): ...", "cannot be called as linear_scan(a, b)"),
    "too many arguments": ("def linear_scan(a, b, c): ...", "missing a required argument: 'c'"),
    "parameters of its own gate": (
        "def gated_delta_rule(q, k, v, a, beta, A_log, dt_bias): ...",
        'passes zeros for A_log and dt_bias, with adapters=(neg_softplus("log_g"),)',
    ),
    "wrong VJP arity": (
        "def linear_scan(a, b): ...\ndef linear_scan_vjp(a, b): ...",
        "cannot be called as linear_scan_vjp(dx, a, b)",
    ),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_plugin_is_one_sentence_and_exit_code_4(folder, capfd, what):
    text, sentence = MALFORMED[what]
    result, _, err = run(capfd, "verify", plugin(folder, text))
    assert result == 4
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


BROKEN = {
    "exception": ("raise RuntimeError('boom')", "error", "raised RuntimeError: boom (my_ops.py:4)"),
    "wrong shape": ("return b[..., 0]", "wrong", "`x` has shape"),
    "a list": ("return b.tolist()", "wrong", "`x` is a list, want an array"),
    "two outputs": ("return a, b", "wrong", "`x` is a tuple, want an array"),
    "none": ("return None", "wrong", "`x` is a NoneType, want an array"),
    "integers": ("return np.zeros(b.shape, int)", "wrong", "`x` has type int64, want float32"),
    "objects": ("return b.astype(object)", "wrong", "`x` is an array of object"),
    "narrower": ("return b.astype('f2')", "wrong", "`x` has the narrower type float16"),
    "exit": ("os._exit(7)", "error", "ended the process with exit code 7"),
    "sys.exit": ("raise SystemExit(1)", "error", "raised SystemExit: 1"),
    "segmentation fault": ("ctypes.string_at(0)", "error", "killed the process by SIGSEGV"),
    "endless loop": ("while True: pass", "error", "did not return within"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_implementation_is_told_and_its_inputs_are_saved(folder, capfd, what):
    body, verdict, sentence = BROKEN[what]
    text = f"import ctypes, os\nimport numpy as np\ndef linear_scan(a, b):\n    {body}\n"
    arguments = ["--check", "value", "--dtype", "float32", "--timeout", "1", "--json"]
    result, out, _ = run(capfd, "verify", plugin(folder, text), *arguments)
    (line,) = json.loads(out)["results"]
    assert result == 1
    assert line["verdict"] == verdict
    assert sentence in line["message"]
    with np.load(line["counterexample"]) as saved:
        assert {"a", "b"} <= set(saved)


@pytest.mark.long
def test_what_an_implementation_prints_does_not_disturb(folder, capfd):
    noisy = RIGHT.replace(
        "    state = 0", "    print('noise'); os.write(1, b'more')\n    state = 0"
    )
    arguments = ["--profile", "quick", "--json"]
    result, out, _ = run(capfd, "verify", plugin(folder, "import os" + noisy), *arguments)
    assert result == 0
    assert json.loads(out)["results"]


@pytest.mark.long
def test_a_function_of_any_name_is_judged_with_as(folder, capfd):
    name = plugin(folder, RIGHT.replace("linear_scan", "my_scan"))
    options = ["--as", "linear_scan", "--profile", "quick"]
    assert run(capfd, "verify", f"{name}::my_scan", *options)[0] == 0
    assert run(capfd, "verify", "my_ops:my_scan", *options)[0] == 0


@pytest.mark.long
def test_own_inputs_are_judged_and_named_in_the_header(folder, capfd):
    name = plugin(folder, RIGHT)
    a = np.full((3, 4, 1), 0.5, np.float32)
    np.savez(folder / "mine.npz", a=a, b=a)
    result, out, _ = run(capfd, "verify", name, "--inputs", "mine.npz")
    assert result == 0
    assert "limited to mine.npz" in out
    np.savez(folder / "short.npz", a=a)
    result, _, err = run(capfd, "verify", name, "--inputs", "short.npz")
    assert result == 4
    assert "short.npz has no array 'b'" in err
    np.savez(folder / "bad.npz", a=a, b=a[:, :2])
    result, _, err = run(capfd, "verify", name, "--inputs", "bad.npz")
    assert result == 4
    assert "`b` has l=2, but earlier arguments have l=4" in err


@pytest.mark.long
def test_own_inputs_without_a_value_are_said_in_one_sentence(folder, capfd):
    name = "hankel_singular_values"
    own = f"import refssm\n\ndef {name}(A, B, C):\n    return refssm.{name}(A, B, C)\n"
    np.savez(folder / "grows.npz", A=np.eye(2) / 2, B=np.ones(2), C=np.ones(2))
    result, _, err = run(capfd, "verify", plugin(folder, own), "--inputs", "grows.npz")
    assert result == 4
    assert f"{name}: no gramian: want an A whose modes all decay, but its powers grow" in err


@pytest.mark.long
def test_in_process_judges_the_same_and_keeps_the_last_inputs(folder, capfd):
    result, out, _ = run(capfd, "verify", WRONG, "--in-process", "--check", "value")
    assert result == 1
    assert "smallest: l=65 n=1" in out
    assert (folder / ".refssm/linear_scan-last.npz").is_file()


@pytest.mark.long
def test_nothing_left_to_check_is_exit_code_5(folder, capfd):
    result, out, _ = run(capfd, "verify", plugin(folder, RIGHT), "--check", "gradient")
    assert result == 5
    assert "needs linear_scan_vjp" in out
    declines = "def linear_scan(a, b): raise NotImplementedError('not today')"
    result, out, _ = run(capfd, "verify", plugin(folder, declines), "--check", "value")
    assert result == 5
    assert "declined all cases" in out


def test_our_own_error_is_exit_code_3_and_one_sentence(capfd, monkeypatch):
    def broken():
        raise ValueError("planted")

    monkeypatch.setattr("refssm.conformance.judging.certificate.refuse_if_wrong", broken)
    result, _, err = run(capfd, "verify", WRONG)
    assert result == 3
    assert "this is a bug of refssm: ValueError: planted" in err


def test_an_interruption_is_exit_code_2(capfd, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("refssm.conformance.judging.certificate.refuse_if_wrong", interrupted)
    result, _, err = run(capfd, "verify", WRONG)
    assert result == 2
    assert err.strip() == "refssm: interrupted"


def test_the_version_is_that_of_the_package_and_of_its_papers(capfd):
    from refssm import __version__

    result, out, _ = run(capfd, "--version")
    assert result == 0
    assert out.strip() == __version__
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8").replace(
        '"', ""
    )
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_show_tells_an_operator(capfd):
    result, out, _ = run(capfd, "show", "linear_scan")
    assert result == 0
    assert "layout    b l n, b l n -> b l n" in out
    assert "def linear_scan_vjp(dx, a, b):" in out
    _, out, _ = run(capfd, "show", "discretize_gbt")
    assert "alpha     weights of the new state: 0 to 1" in out


@pytest.mark.long
def test_a_missing_oracle_makes_every_check_an_error(tmp_path):
    shutil.copytree(ROOT / "refssm", tmp_path / "refssm", ignore=shutil.ignore_patterns("*.pyc"))
    (tmp_path / "refssm/oracle/cauchy.py").unlink()
    command = [sys.executable, "-m", "refssm", "verify", "refssm.jit.cauchy", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8"
    )
    results = json.loads(ran.stdout)["results"]
    assert ran.returncode == 1
    assert {r["verdict"] for r in results} == {"error"}
    assert "no oracle: No module named 'refssm.oracle.cauchy'" in results[0]["message"]
