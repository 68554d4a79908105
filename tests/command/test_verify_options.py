"""`--against`, `--inputs`, `--output` from a user's view."""

import json

import numpy as np
import pytest
from judging import LATE, ONE_SEQUENCE, SCAN, plugin, run

import refssm

WIDE = SCAN.replace("state = 0", "state = np.float64(0)")  # different rounding, equally right
KERNEL = """
import numpy as np

def vandermonde_kernel(v, x, *, l):
    steps = np.arange(l, dtype=np.finfo(x.dtype).dtype)
    return (v[..., :, None] * np.exp(x[..., :, None] * steps)).sum(-2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, SCAN, "right.py")
    plugin(tmp_path, LATE, "late.py")
    plugin(tmp_path, WIDE, "wide.py")
    plugin(tmp_path, KERNEL, "kernel.py")
    return tmp_path


def against(capfd, new, old, *options):
    """The results of `--check against`, as JSON."""
    options = ("--check", "against", "--dtype", "float32", "--json", *options)
    result, out, err = run(capfd, "verify", new, "--against", old, *options)
    return result, json.loads(out)["results"] if out else err


def test_an_operator_without_a_type_that_was_asked_for_is_skipped_beside_one_that_has_it(
    folder, capfd
):
    plugin(folder, SCAN + "\n\ndef cauchy_kernel(v, w, z):\n    return v\n", "two.py")
    asked = ("--dtype", "float32", "--check", "alias", "--profile", "quick")
    result, out, _ = run(capfd, "verify", "two.py", *asked)
    told = "judged only in complex64, complex128: choose one of these types"
    (skipped,) = (line for line in out.splitlines() if line.startswith("skip "))
    assert (result, skipped.endswith(told), "(1 check, 1 skipped, " in out) == (0, True, True)
    plugin(folder, "def cauchy_kernel(v, w, z):\n    return v\n", "one.py")
    result, _, err = run(capfd, "verify", "one.py", *asked)
    assert (result, err.strip()) == (4, f"refssm: cauchy_kernel is {told}")


def test_a_run_that_judges_nothing_says_so(folder, capfd):
    plugin(folder, "def nplr_legs(*, n):\n    return ()\n", "one.py")
    result, out, _ = run(capfd, "verify", "one.py", "--check", "gradient")
    assert (result, out.startswith("NOTHING JUDGED")) == (5, True)


@pytest.mark.long
def test_a_new_implementation_beside_itself_is_equal_bit_for_bit(folder, capfd):
    result, (line,) = against(capfd, "right.py", "right.py")
    assert (result, line["verdict"]) == (0, "pass")
    assert line["hint"].startswith("right.py: worst ratio 0.")
    assert line["hint"].endswith("; all bits equal in 29 of 29")


def test_another_right_implementation_is_told_by_how_much_it_differs(folder, capfd):
    result, (line,) = against(capfd, "wide.py", "right.py")
    assert (result, line["verdict"]) == (0, "pass")
    equal = int(line["hint"].partition("all bits equal in ")[2].removesuffix(" of 29"))
    assert 0 < equal < 29


@pytest.mark.long
def test_a_new_one_that_is_wrong_where_the_old_is_right_fails(folder, capfd):
    result, (line,) = against(capfd, "late.py", "right.py")
    assert result == 1
    assert line["verdict"] in ("wrong", "inaccurate")
    assert line["message"].startswith("right.py is right here (ratio ")
    assert "the new one is not: worst x[0, 64, 0]: got 66, want 65" in line["message"]
    assert line["smallest"] == "l=65 n=1; a=1 throughout, b=1 throughout"


@pytest.mark.long
def test_a_new_one_that_is_right_where_the_old_is_wrong_passes_and_says_so(folder, capfd):
    result, (line,) = against(capfd, "right.py", "late.py")
    assert (result, line["verdict"]) == (0, "pass")
    told = line["hint"].partition(" where it is right, wrong in ")[2]
    wrong, equal = told.replace(" cases; all bits equal in", "").split(" of 29")[:2]
    assert int(wrong) + int(equal) == 29
    assert int(wrong) > 0


@pytest.mark.long
def test_what_both_have_wrong_is_no_difference_and_every_case_is_counted(folder, capfd):
    result, (line,) = against(capfd, "late.py", "late.py")
    assert (result, line["verdict"]) == (0, "pass")
    assert "both implementations are wrong in some cases: see the check value" in line["notes"]
    assert line["hint"].endswith("all bits equal in 29 of 29")


@pytest.mark.long
def test_each_type_is_told_of_its_own_cases(folder, capfd):
    _, lines = against(capfd, "right.py", "right.py", "--dtype", "float64")
    told = {line["dtype"]: line["hint"].partition("equal in ")[2] for line in lines}
    assert {*told} == {"float32", "float64"}
    (few, all_few), (many, all_many) = (told[t].split(" of ") for t in ("float32", "float64"))
    assert few == all_few
    assert many == all_many
    assert int(few) < int(many)  # more cases in double precision


@pytest.mark.long
def test_without_being_asked_for_it_stands_beside_the_other_checks(folder, capfd):
    result, out, _ = run(
        capfd, "verify", "-v", "right.py", "--against", "late.py", "--profile", "quick"
    )
    assert result == 0
    assert "pass linear_scan/value[float32]" in out
    assert "pass linear_scan/against[float32]" in out
    assert "  late.py: worst ratio" in out


@pytest.mark.long
def test_an_old_implementation_of_something_else_is_told(folder, capfd):
    _, out, err = run(capfd, "verify", "right.py", "--against", "kernel.py", "--check", "against")
    assert "--against kernel.py: it has no linear_scan to compare with" in out + err
    result, _, err = run(capfd, "verify", "right.py", "--against", "nowhere.py")
    assert result == 4
    assert "nowhere.py: no such file" in err


v, x = np.array([1, 2, 3], np.float32), np.array([-0.1, -0.2, 0.0], np.float32)
right = refssm.vandermonde_kernel(v, x, l=7)


def saved(folder, name="mine.npz", **arrays):
    np.savez(folder / name, **({"v": v, "x": x, "l": 7} | arrays))
    return "--inputs", name


def test_own_inputs_of_an_operator_with_a_length_hold_the_length(folder, capfd):
    result, out, _ = run(capfd, "verify", "kernel.py", "-v", *saved(folder))
    assert result == 0
    assert "pass vandermonde_kernel/value[float32]" in out
    assert "1 case " in out
    assert "inputs: mine.npz" in out
    wrong = plugin(folder, KERNEL.replace("arange(l", "arange(1, l + 1"), "shifted.py")
    result, out, _ = run(capfd, "verify", wrong, *saved(folder))
    assert result == 1
    assert "worst k[" in out


@pytest.mark.long
def test_own_inputs_reach_a_function_of_core_arrays_slice_by_slice(folder, capfd):
    a = np.random.default_rng(0).random((2, 80, 3))
    np.savez(folder / "batch.npz", a=a, b=a)
    result, out, _ = run(capfd, "verify", plugin(folder, ONE_SEQUENCE), "--inputs", "batch.npz")
    assert result == 0, out
    assert "1 case slice by slice" in out
    wrong = plugin(folder, ONE_SEQUENCE.replace("return x", "x[64:65] += 1; return x"), "wrong.py")
    _, out, _ = run(capfd, "verify", wrong, "--check", "value", "--dtype", "float32")
    again = next(line for line in out.splitlines() if "again: " in line).split("refssm ")[1]
    worst = next(x for x in out.splitlines() if x.startswith("  worst x[0, 64, 0]"))
    result, out, _ = run(capfd, *again.split())
    assert result == 1
    assert worst in out


UNFIT = {
    "no length": ({"v": v, "x": x}, "no array 'l'"),
    "no mode": ({"v": v, "l": 7}, "no array 'x'"),
    "two lengths": ({"v": v, "x": x, "l": [7, 8]}, "`l` must be an integer >= 0"),
    "half a length": ({"v": v, "x": x, "l": 7.5}, "`l` must be an integer >= 0"),
    "a word": ({"v": v, "x": x, "l": "seven"}, "`l` must be an integer >= 0"),
    "a negative length": ({"v": v, "x": x, "l": -1}, "`l` must be an integer >= 0, got -1"),
    "another size": ({"v": v, "x": x[:2], "l": 7}, "`x` has n=2, but earlier arguments have n=3"),
    "words": ({"v": v.astype(str), "x": x, "l": 7}, "`v` has dtype"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_own_inputs_that_do_not_fit_are_one_sentence(folder, capfd, what):
    arrays, sentence = UNFIT[what]
    np.savez(folder / "mine.npz", **arrays)
    result, _, err = run(capfd, "verify", "kernel.py", "--inputs", "mine.npz")
    assert result == 4
    assert err.startswith("refssm: mine.npz")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def graded(folder, capfd, y, *options, name="k.npy", op="vandermonde_kernel"):
    """Exit code and report for a saved result."""
    np.save(folder / name, y) if name.endswith(".npy") else np.savez(folder / name, **y)
    inputs = options or saved(folder)
    result, out, err = run(capfd, "verify", "-v", "--output", name, "--as", op, *inputs)
    return result, out + err


GRADED = {
    "right": (right, 0, "pass vandermonde_kernel/value[float32]"),
    "wider": (right.astype(float), 0, "note: `k` is float64, wider than float32"),
    "off at 3": (right + np.eye(7, dtype=np.float32)[3], 1, "every entry with l = 3 wrong, one of"),
    "too short": (right[:5], 1, "`k` has shape (5,), want (7,)"),
    "integers": (right.astype(int), 1, "`k` has type int64, want float32"),
    "half of the digits": (right.astype(np.float16), 1, "`k` has the narrower type float16"),
}


@pytest.mark.parametrize("what", GRADED)
def test_a_saved_result_is_graded_without_running_any_code(folder, capfd, what):
    y, exit_code, sentence = GRADED[what]
    result, told = graded(folder, capfd, y)
    assert result == exit_code
    assert sentence in told


def test_several_outputs_are_saved_by_name(folder, capfd):
    w, B, dt = np.array([-1.0, -2.0]), np.ones((2, 1)), np.array([0.5, 0.25])
    np.savez(folder / "system.npz", w=w, B=B, dt=dt)
    A_bar, B_bar = refssm.discretize_diagonal_zoh(w, B, dt)
    given = {"op": "discretize_diagonal_zoh", "name": "out.npz"}
    inputs = ("--inputs", "system.npz")
    result, told = graded(folder, capfd, {"A_bar": A_bar, "B_bar": B_bar}, *inputs, **given)
    assert result == 0
    assert "pass discretize_diagonal_zoh/value[float64]" in told
    result, told = graded(folder, capfd, {"A_bar": A_bar, "B_bar": 2 * B_bar}, *inputs, **given)
    assert result == 1
    assert "B_bar[" in told
    result, told = graded(folder, capfd, {"A_bar": A_bar}, *inputs, **given)
    assert result == 4
    assert (
        "does not have the outputs of discretize_diagonal_zoh: wanted .npz with A_bar, B_bar"
        in told
    )


def test_a_saved_result_of_sixteen_bits_is_graded_as_such(folder, capfd):
    a = np.full((4, 2), 0.7, np.float16)
    np.savez(folder / "half.npz", a=a, b=a)
    exact = refssm.linear_scan(a.astype(float), a.astype(float))
    options = ("--inputs", "half.npz", "--dtype", "float16")
    result, told = graded(folder, capfd, exact.astype(np.float16), *options, op="linear_scan")
    assert "pass linear_scan/value[float16]" in told
    assert result == 0
    result, told = graded(folder, capfd, exact.astype(np.float32), *options, op="linear_scan")
    assert result == 0
    assert "pass linear_scan/value[float16]" in told
    coarse = np.round(exact.astype(np.float16) * 16) / 16
    assert graded(folder, capfd, coarse, *options, op="linear_scan")[0] == 1


@pytest.mark.parametrize("number", [np.float32(0.7), np.complex64(0.5 + 0.5j)], ids=str)
def test_numbers_that_are_no_float16_are_not_judged_in_it(folder, capfd, number):
    a = np.full((4, 2), number)
    np.savez(folder / "mine.npz", a=a, b=a)
    options = ("--inputs", "mine.npz", "--dtype", "float16")
    result, _, err = run(capfd, "verify", "right.py", *options)
    assert result == 4
    assert "float16" in err


OUTPUT_USAGE = [
    ("--as", "vandermonde_kernel"),
    ("--inputs", "mine.npz"),
    ("kernel.py", "--as", "vandermonde_kernel", "--inputs", "mine.npz"),
]


@pytest.mark.parametrize("arguments", OUTPUT_USAGE, ids=" ".join)
def test_a_saved_result_needs_an_operator_and_inputs_and_no_code(folder, capfd, arguments):
    saved(folder)
    np.save(folder / "k.npy", right)
    result, _, err = run(capfd, "verify", "--output", "k.npy", *arguments)
    assert result == 4
    assert "--output grades a saved result: give --as OPERATOR and --inputs, and no target" in err
    options = ("--as", "vandermonde_kernel", *saved(folder))
    result, _, err = run(capfd, "verify", "--output", "nothing.npy", *options)
    assert result == 4
    assert "nothing.npy: not a readable .npz file" in err


WAITS = """
import os

def linear_scan(a, b):
    raise RuntimeError(f"threads wait: {os.environ['OMP_WAIT_POLICY']}")
"""


@pytest.mark.parametrize("own", ["", "ACTIVE"])
def test_threads_of_a_judged_function_do_not_wait_actively(own, folder, capfd, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if own:
        monkeypatch.setenv("OMP_WAIT_POLICY", own)
    name = plugin(folder, WAITS)
    _, out, _ = run(capfd, "verify", name, "--profile", "quick", "--check", "value")
    assert f"threads wait: {own or 'PASSIVE'}" in out
