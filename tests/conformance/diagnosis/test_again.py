"""Difficulties of a new user: own data in an own layout, repeated options, correct hints."""

import json
import re
import shlex

import numpy as np
import pytest
from judging import SCAN, plugin, run

import refssm

LAST = "b n l, b n l -> b n l"
TURNED = (
    SCAN.replace("def linear_scan", "def ours")
    + """
def my_scan(a, b):
    return ours(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)

def tail_lost(a, b):
    x = my_scan(a, b)
    x[..., 16:] = 0
    return x
"""
)
AS = ("--as", "linear_scan", "--layout", LAST, "--dtype", "float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, TURNED)
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 2, 3, 17)).astype("f")
    np.savez("batch.npz", a=a, b=b)
    x = refssm.linear_scan(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)
    np.save("right.npy", x)
    np.save("wrong.npy", np.where(np.arange(17) < 16, x, 0))
    return tmp_path


def again(out):
    """The arguments of the first `again:` line."""
    line = next(line for line in out.splitlines() if "again: refssm " in line)
    return shlex.split(line.split("again: refssm ")[1])


def worst(out):
    return next(x for x in out.splitlines() if x.startswith("  ") and "worst x[" in x)


@pytest.mark.parametrize(("function", "result"), [("my_scan", 0), ("tail_lost", 1)])
def test_own_arrays_lie_in_the_layout_that_is_declared(function, result, folder, capfd):
    call = ("verify", f"my_ops.py::{function}", *AS)
    assert run(capfd, *call, "--inputs", "batch.npz")[0] == result


@pytest.mark.parametrize(("name", "result"), [("right.npy", 0), ("wrong.npy", 1)])
def test_a_saved_result_lies_in_the_layout_that_is_declared(name, result, folder, capfd):
    call = ("verify", *AS[:4], "--inputs", "batch.npz", "--output", name)
    assert run(capfd, *call)[0] == result
    assert run(capfd, *call[:3], *call[5:])[0] == 1  # read as b l n, no shape fits


def test_own_arrays_that_do_not_fit_the_layout_are_told(folder, capfd):
    np.savez("flat.npz", a=np.ones(3, "f"), b=np.ones((1, 2, 3), "f"))
    result, _, err = run(capfd, "verify", "my_ops.py::my_scan", *AS, "--inputs", "flat.npz")
    assert result == 4
    assert err == "refssm: flat.npz: `a` has shape (3,), want axes b n l\n"


@pytest.mark.long
def test_a_failure_in_another_layout_is_seen_again_by_the_line_it_prints(folder, capfd):
    result, out, _ = run(capfd, "verify", "my_ops.py::tail_lost", *AS, "--check", "value")
    assert result == 1
    words = again(out)
    assert words[0] == "replay"
    result, repeated, _ = run(capfd, *words)
    assert result == 1
    assert worst(out) in repeated


@pytest.mark.long
def test_a_failed_law_is_seen_again_on_its_case(folder, capfd):
    plugin(folder, SCAN.replace("return x", "return x * (1 + (x.shape[-2] > 64))"), "law.py")
    call = ("verify", "law.py", "--check", "prefix", "--dtype", "float64", "--seed", "3")
    result, out, _ = run(capfd, *call)
    assert result == 1
    words = again(out)
    result, repeated, _ = run(capfd, *words)
    assert result == 1
    assert worst(out) in repeated


@pytest.mark.long
def test_a_range_and_an_old_function_are_named_again(folder, capfd):
    plugin(folder, SCAN.replace("return x", "return 2 * x"), "double.py")
    call = ("verify", "double.py", "--check", "against", "--dtype", "float32")
    more = ("--against", "right.py", "--where", "l=40..50")
    plugin(folder, SCAN, "right.py")
    result, out, _ = run(capfd, *call, *more)
    assert result == 1
    words = again(out)
    result, repeated, _ = run(capfd, *words)
    assert result == 1
    assert worst(out) in repeated


def test_own_arrays_are_for_the_value_only(folder, capfd):
    call = ("verify", "my_ops.py::my_scan", *AS, "--inputs", "batch.npz", "--check")
    assert run(capfd, *call, "value")[0] == 0
    result, _, err = run(capfd, *call, "prefix")
    assert result == 4
    assert "leave other checks out" in err


@pytest.mark.long
def test_an_old_function_is_called_as_the_new_one_unless_it_declares_itself(folder, capfd):
    call = ("verify", "my_ops.py::my_scan", *AS, "--check", "against", "--against")
    result, out, _ = run(capfd, *call, "my_ops.py::my_scan")
    assert result == 0
    assert re.search(r"all bits equal in (\d+) of \1\b", out)
    marked = '@implements("linear_scan")\ndef another'
    declared = SCAN.replace("def linear_scan", marked)
    declared = "from refssm.testing import implements\n" + declared
    result, out, _ = run(capfd, *call, plugin(folder, declared, "old.py"))
    assert result == 0
    assert "old.py: worst ratio" in out


RAISING = "def linear_scan(a, b):\n    raise KeyError('lost')\n"


@pytest.mark.long
def test_an_old_function_that_raises_is_an_error_with_its_words(folder, capfd):
    plugin(folder, RAISING, "old.py")
    call = ("verify", "my_ops.py::my_scan", *AS, "--check", "against", "--against", "old.py")
    result, out, _ = run(capfd, *call)
    assert result == 1
    assert "old.py raised KeyError: 'lost'" in out


FLUSHING = SCAN.replace(
    "    return x", "    x = np.where(abs(x) < np.finfo(x.dtype).tiny, x * 0, x)\n    return x"
)


@pytest.mark.long
@pytest.mark.parametrize(("more", "hint"), [("", True), (" * np.float32(1.001)", False)])
def test_flushing_is_named_only_where_it_is_all_that_is_wrong(more, hint, folder, capfd):
    plugin(folder, FLUSHING.replace("return x", f"return x{more}"), "flushing.py")
    call = ("verify", "flushing.py", "--check", "value", "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 1
    assert ("declare ftz=True" in out) == hint


@pytest.mark.long
def test_a_profile_without_gradients_says_that_it_left_one_out(folder, capfd):
    gradient = SCAN + "\ndef linear_scan_vjp(dx, a, b):\n    return a, b\n"
    plugin(folder, gradient, "wrong.py")
    call = ("verify", "wrong.py", "--profile", "quick", "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 0
    assert "not in the quick profile: --check gradient runs it" in out
    assert run(capfd, *call, "--check", "gradient")[0] == 1


def test_a_forgotten_framework_is_named(folder, capfd):
    text = "import types\ntorch = types.ModuleType('torch')\ndef linear_scan(a, b):\n    a.no\n"
    plugin(folder, text, "tensors.py")
    result, out, _ = run(capfd, "verify", "tensors.py")
    assert result == 1
    assert "it seems to want torch arrays, try --framework torch: raised AttributeError" in out
    assert out.count("raised AttributeError") == 2  # in the verdict, and below the check


def test_what_always_raises_passes_nothing(folder, capfd):
    plugin(folder, RAISING, "raising.py")
    call = ("verify", "raising.py", "--profile", "quick", "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 1
    assert not any(line.startswith("pass") for line in out.splitlines())


def test_strides_of_what_is_wrong_anyway_are_not_blamed(folder, capfd):
    plugin(folder, SCAN.replace("return x", "return 2 * x"), "double.py")
    call = ("verify", "double.py", "--check", "strides", "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 1
    assert "also with contiguous arrays: worst x[" in out


@pytest.mark.long
@pytest.mark.parametrize("reset", [2, 17, 70])
def test_the_smallest_length_is_found_between_the_sizes_that_are_drawn(reset, folder, capfd):
    forgetful = SCAN.replace("* state +", f"* (state if k != {reset} else 0) +")
    plugin(folder, forgetful, "forgetful.py")
    call = ("verify", "forgetful.py", "--check", "value", "--dtype", "float32")
    result, out, _ = run(capfd, *call)
    assert result == 1
    assert f"smallest: l={reset + 1} n=1;" in out
    result, out, _ = run(capfd, *call, "--where", f"l={reset + 5}..300")
    assert f"smallest: l={reset + 5} n=1;" in out


@pytest.mark.long
def test_the_lines_may_be_pasted_whatever_the_file_is_called(tmp_path, monkeypatch, capfd):
    place = tmp_path / "it's my dir"
    place.mkdir()
    monkeypatch.chdir(tmp_path)
    plugin(place, SCAN.replace("return x", "return 2 * x"))
    _, out, _ = run(
        capfd, "verify", "it's my dir/my_ops.py", "--dtype", "float32", "--check", "value"
    )
    arguments = again(out)
    assert arguments[2] == "it's my dir/my_ops.py"
    assert run(capfd, *arguments)[0] == 1
    alone = next(line for line in out.splitlines() if "alone: python " in line)
    script = shlex.split(alone.split("alone: ")[1].split(" (NumPy")[0])[1]
    assert (tmp_path / script).exists()


OF_ONE_TYPE = """
    if b.dtype.kind == "c":
        {}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "code", "verdict"),
    [
        ("nowhere(b)", 1, "error"),
        ("(1,)[2]", 1, "error"),
        ("raise TypeError('real numbers only')", 0, "skipped"),
        ("raise RuntimeError('expected Float but found ComplexFloat')", 0, "skipped"),
    ],
    ids=["name", "index", "type", "framework"],
)
def test_a_mistake_in_one_type_is_an_error_and_a_refused_type_is_none(
    statement, code, verdict, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    begun = SCAN.replace(
        "    x = np.empty_like", OF_ONE_TYPE.format(statement) + "    x = np.empty_like"
    )
    plugin(tmp_path, begun)
    result, out, _ = run(capfd, "verify", "my_ops.py", "--check", "value", "--json")
    told = {r["dtype"]: r["verdict"] for r in json.loads(out)["results"]}
    wanted = {"float32": "pass", "float64": "pass", "complex64": verdict, "complex128": verdict}
    assert (result > 0, told) == (code > 0, wanted)


@pytest.mark.long
def test_a_kept_failure_is_none_of_those_that_right_programs_have(tmp_path, monkeypatch, capfd):
    # v d*/|d|² gives NaN at a pole: correct, so the failing case must not shrink to that
    text = "import numpy as np\nimport refssm\n\ndef cauchy_kernel(v, w, z):\n"
    text += "    d = z[..., :, None] - w[..., None, :N]\n"
    text += "    with np.errstate(all='ignore'):\n"
    text += "        terms = v[..., None, :N] * d.conj() / (d.real**2 + d.imag**2)\n"
    text += "    return terms.sum(-1).astype(np.result_type(v, w, z))\n"
    monkeypatch.chdir(tmp_path)
    one = ("verify", "my_ops.py", "--check", "value", "--dtype", "complex64")
    plugin(tmp_path, "N = 40\n" + text)
    result, out, _ = run(capfd, *one)
    assert result == 1
    plugin(tmp_path, "N = None\n" + text)
    assert run(capfd, *one)[0] == 0
    assert run(capfd, *again(out))[0] == 0
