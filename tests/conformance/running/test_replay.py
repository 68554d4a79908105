"""A stored failure: judged again by `refssm replay`, and without refssm by its script."""

import json
import subprocess
import sys

import numpy as np
import pytest
from judging import SCAN, plugin, run

from refssm.conformance.diagnosis.script import STORY

# each check of a scan that loses its state, or lacks a gradient, in a different way
LOSING = SCAN.replace("* state +", "* (state if k != 17 else 0) +")
GRADIENT = SCAN + "\ndef linear_scan_vjp(dx, a, b):\n    return np.broadcast_to(dx, a.shape), dx\n"
FUTURE = SCAN.replace("    return x", "    return x + (b.sum(-2, keepdims=True) > 0)")
WRITING = SCAN.replace("    return x", "    a *= 0\n    return x")
ONE = LOSING.replace("x =", "assert b.ndim == 2\n    x =", 1)
RAISING = SCAN.replace(
    "    return x", '    if x.any():\n        raise OSError(\'no """ \\\\N here\')\n    return x'
)
SHORT = SCAN.replace("    return x", "    return x[..., :-1, :]")
WHOLE = SCAN.replace("    return x", "    return x.astype(int)")
PAIR = SCAN.replace("    return x", "    return x, x")
DYING = SCAN.replace("    return x", "    if x.any():\n        import os; os.abort()\n    return x")
FAILING = {
    "value": (LOSING, "value", True),
    "nan": (LOSING, "nan", True),
    "gradient": (GRADIENT, "gradient", True),
    "a law": (FUTURE, "causal", True),
    "conduct": (WRITING, "unchanged", True),
    "memory": (SCAN.replace("    return x", "    return b"), "alias", False),
    "an exception": (RAISING, "value", True),
    "a crash": (DYING, "value", True),
    "a shape": (SHORT, "value", True),
    "a type": (WHOLE, "value", True),
    "a pair": (PAIR, "value", True),
    "slice by slice": (ONE, "value", True),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(capfd, folder, text, check):
    """Judge a plug-in; the first result as JSON."""
    plugin(folder, text)
    call = ("--check", check, "--dtype", "float32", "--json")
    result, out, _ = run(capfd, "verify", "my_ops.py", *call)
    assert result == 1
    return json.loads(out)["results"][0]


@pytest.mark.long
@pytest.mark.parametrize(("text", "check", "script"), FAILING.values(), ids=FAILING)
def test_a_failure_of_every_kind_is_replayed_until_it_is_mended(text, check, script, folder, capfd):
    line = kept(capfd, folder, text, check)
    file = line["counterexample"]
    result, out, _ = run(capfd, "replay", file)
    assert result == 1
    assert f"FAIL linear_scan/{check}[float32]" in out
    assert (line["message"].partition("worst")[2] or line["message"]) in out
    mended = SCAN + "\nimport refssm\n" if check != "gradient" else MENDED
    plugin(folder, mended, "mended.py")
    result, out, _ = run(capfd, "replay", file, "mended.py")
    assert result == 0, out
    assert out.startswith("pass")
    assert bool(line["alone"]) == script


MENDED = """
from refssm.scan import LINEAR_SCAN
linear_scan, linear_scan_vjp = (
    lambda a, b: LINEAR_SCAN.reference(a, b), lambda dx, a, b: LINEAR_SCAN.bare_vjp(dx, a, b)
)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["value", "nan", "gradient", "a law", "slice by slice"])
def test_the_script_needs_numpy_and_the_module_only(name, folder, capfd):
    text, check, _ = FAILING[name]
    line = kept(capfd, folder, text, check)
    blocked = "import sys; sys.modules['refssm'] = None; import runpy, sys; "
    code = f"{blocked}sys.argv = [{line['alone']!r}]; runpy.run_path({line['alone']!r})"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert alone.returncode == 1, alone.stderr
    assert "entries are wrong" in alone.stdout
    assert "Traceback" not in alone.stderr
    right = SCAN if check != "gradient" else RIGHT
    plugin(folder, right)
    alone = subprocess.run([sys.executable, line["alone"]], capture_output=True, encoding="utf-8")
    assert alone.returncode == 0, alone.stdout + alone.stderr


SAID = {
    "conduct": "the call wrote to its argument 0",
    "an exception": 'OSError: no """ \\N here',
    "a crash": "",
    "a shape": "x has shape (1, 0, 1), want (1, 1, 1)",
    "a type": "x has type int64, want float32",
    "a pair": "x has shape (2, 1, 1, 1), want (1, 1, 1)",
}


@pytest.mark.long
@pytest.mark.parametrize("name", SAID)
def test_the_script_shows_a_call_that_came_to_nothing(name, folder, capfd):
    text, check, _ = FAILING[name]
    line = kept(capfd, folder, text, check)
    alone = subprocess.run([sys.executable, line["alone"]], capture_output=True, encoding="utf-8")
    assert alone.returncode != 0
    assert alone.stderr.splitlines()[-1:] == [SAID[name]] or not SAID[name]
    plugin(folder, SCAN)
    alone = subprocess.run([sys.executable, line["alone"]], capture_output=True, encoding="utf-8")
    assert alone.returncode == 0, alone.stdout + alone.stderr


RIGHT = (
    SCAN
    + """
def linear_scan_vjp(dx, a, b):
    g = np.zeros_like(dx)
    later = 0
    for k in range(dx.shape[-2] - 1, -1, -1):
        g[..., k, :] = later = dx[..., k, :] + later
        later = a[..., k, :].conj() * later
    x = linear_scan(a, b)
    before = np.concatenate([0 * x[..., :1, :], x[..., :-1, :]], -2)
    return before.conj() * g, g
"""
)


@pytest.mark.long
def test_the_smallest_case_of_an_exception_is_between_the_sizes_that_are_drawn(folder, capfd):
    late = SCAN.replace("    x =", "    if a.shape[-2] > 40:\n        raise OSError\n    x =", 1)
    line = kept(capfd, folder, late, "value")
    assert (line["verdict"], line["smallest"].partition(" ")[0]) == ("error", "l=41")
    short = SCAN.replace("    return x", "    return x[:, :40]")
    line = kept(capfd, folder, short, "value")
    assert (line["verdict"], line["smallest"].partition(" ")[0]) == ("wrong", "l=41")


@pytest.mark.long
def test_a_replay_remembers_how_the_function_was_called(folder, capfd):
    turned = LOSING.replace("def linear_scan", "def ours") + (
        "\ndef theirs(a, b):\n    return ours(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)\n"
    )
    plugin(folder, turned)
    call = ("--as", "linear_scan", "--layout", "b n l, b n l -> b n l", "--where", "l=40..50")
    call += ("--check", "value", "--dtype", "float32", "--json")
    result, out, _ = run(capfd, "verify", "my_ops.py::theirs", *call)
    assert result == 1
    line = json.loads(out)["results"][0]
    assert run(capfd, "replay", line["counterexample"])[0] == 1
    alone = subprocess.run([sys.executable, line["alone"]], capture_output=True, encoding="utf-8")
    assert alone.returncode == 1
    assert "x[0, 0, 17]" in alone.stdout  # in the author's axes


def spoiled(path, change):
    """Change the stored record of a file."""
    with np.load(path) as saved:
        arrays = dict(saved)
    told = json.loads(str(arrays[STORY][()]))
    arrays[STORY] = np.array(change(told))
    np.savez(path, **arrays)


SPOILED = {
    "no JSON": lambda told: "{",
    "a list": lambda told: "[]",
    "another format": lambda told: json.dumps(told | {"format": 99}),
    "no check": lambda told: json.dumps({k: v for k, v in told.items() if k != "check"}),
    "an unknown check": lambda told: json.dumps(told | {"check": "taste"}),
    "an unknown type": lambda told: json.dumps(told | {"dtype": "float8"}),
    "an unknown operator": lambda told: json.dumps(told | {"operator": "linear_scam"}),
    "ranges that are none": lambda told: json.dumps(told | {"where": ["l=few"]}),
    "options of another type": lambda told: json.dumps(told | {"told": [1]}),
    "a case without sizes": lambda told: json.dumps(told | {"case": {"batch": {}}}),
    "a case of words": lambda told: json.dumps(told | {"case": "simple"}),
}


@pytest.mark.long
@pytest.mark.parametrize("change", SPOILED.values(), ids=SPOILED)
def test_a_file_that_was_changed_is_refused_in_a_sentence(change, folder, capfd):
    line = kept(capfd, folder, LOSING, "value")
    spoiled(line["counterexample"], change)
    result, out, err = run(capfd, "replay", line["counterexample"])
    assert result == 4, out
    assert err.startswith("refssm: ")
    assert err.count("\n") == 1


def test_what_is_no_failure_is_refused_in_a_sentence(folder, capfd):
    plugin(folder, SCAN)
    np.savez("own.npz", a=np.ones((1, 2, 3)), b=np.ones((1, 2, 3)))
    (folder / "text.npz").write_text("no archive", encoding="utf-8")
    for name, told in {"own.npz": "has no saved failure", "text.npz": "not a readable"}.items():
        result, _, err = run(capfd, "replay", name, "my_ops.py")
        assert result == 4
        assert told in err
    assert run(capfd, "replay", "absent.npz")[0] == 4


@pytest.mark.long
def test_a_target_without_the_operator_is_refused(folder, capfd):
    line = kept(capfd, folder, LOSING, "value")
    plugin(folder, "def cauchy_kernel(v, w, z):\n    return v\n", "other.py")
    result, _, err = run(capfd, "replay", line["counterexample"], "other.py")
    assert result == 4
    assert "no linear_scan to replay" in err
