"""Gradients with `--against` and `--inputs`."""

import json

import numpy as np
import pytest
from judging import SCAN, plugin, run

VJP = """
def linear_scan_vjp(dx, a, b):
    db = np.zeros(b.shape, np.result_type(dx, b))
    state = 0
    for k in reversed(range(b.shape[-2])):
        state = dx[..., k, :] + state
        db[..., k, :] = state
        state = np.conj(a[..., k, :]) * state
    x = np.zeros_like(db)
    x[..., 1:, :] = linear_scan(a, b)[..., :-1, :]
    return db * np.conj(x), db
"""
RIGHT = SCAN + VJP
WRONG = SCAN + VJP.replace("np.conj(a", "1.5 * np.conj(a")
SHORT = ("--profile", "default", "--cases", "6", "--dtype", "float32")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"right.py": RIGHT, "wrong.py": WRONG, "without.py": SCAN}.items():
        plugin(tmp_path, text, name)
    a, b = np.random.default_rng(0).random((2, 4, 2)).astype(np.float32)
    dx = np.random.default_rng(1).random((4, 2)).astype(np.float32)
    np.savez("batch.npz", a=a, b=b)
    np.savez("given.npz", a=a, b=b, dx=dx, q=1.0)
    return tmp_path


def lines(capfd, *arguments):
    """Exit code and the results by check, as JSON."""
    code, out, err = run(capfd, "verify", *arguments, "--json")
    assert out, err
    return code, {r["check"]: r for r in json.loads(out)["results"]}


def compared(capfd, new, old, *more):
    return lines(capfd, new, "--against", old, *SHORT, *more)


@pytest.mark.long
def test_the_gradient_of_a_new_file_is_compared_with_that_of_the_old_one(folder, capfd):
    asked = ("--check", "against", "--check", "against_gradient")
    code, found = compared(capfd, "wrong.py", "right.py", *asked)
    assert code == 1
    assert {name: r["verdict"] for name, r in found.items()} == {
        "against": "pass",
        "against_gradient": "wrong",
    }
    assert found["against_gradient"]["message"].startswith("right.py is right here (ratio ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("new", "old", "kind"),
    [("raises.py", "right.py", ""), ("right.py", "raises.py", " in raises.py")],
)
def test_an_exception_of_either_of_two_files_does_not_end_the_comparison(
    new, old, kind, folder, capfd
):
    plugin(
        folder,
        RIGHT.replace("    state = 0", "    assert b.shape[-1] < 2\n    state = 0"),
        "raises.py",
    )
    code, found = compared(capfd, new, old, "--check", "against")
    assert code == 1
    assert found["against"]["examples"] == 6
    assert found["against"]["kind"] == f"raised AssertionError{kind}"
    assert found["against"]["smallest"].startswith("l=1 n=2")


@pytest.mark.long
def test_equal_gradients_are_counted_apart_from_values(folder, capfd):
    code, found = compared(capfd, "right.py", "right.py", "--check", "against_gradient")
    assert (code, found["against_gradient"]["verdict"]) == (0, "pass")
    assert found["against_gradient"]["hint"].startswith("right.py: worst ratio ")
    code, found = compared(capfd, "wrong.py", "wrong.py", "--check", "against_gradient")
    note = "both implementations are wrong in some cases: see the check gradient"
    assert (code, note in found["against_gradient"]["notes"]) == (0, True)


@pytest.mark.long
def test_two_processes_compare_gradients_as_one_does(folder, capfd):
    asked = ("--check", "against_gradient", "--check", "against")
    one = compared(capfd, "wrong.py", "right.py", *asked)
    two = compared(capfd, "wrong.py", "right.py", *asked, "--workers", "2")
    for _, found in (one, two):
        for line in found.values():
            del line["seconds"]
    assert one == two


@pytest.mark.parametrize(
    ("new", "old", "why"),
    [
        ("right.py", "without.py", "needs linear_scan_vjp in without.py"),
        ("without.py", "right.py", "needs linear_scan_vjp here"),
    ],
)
def test_a_file_without_a_gradient_is_named(folder, capfd, new, old, why):
    code, found = compared(capfd, new, old, "--check", "against_gradient")
    assert code == 5
    assert (found["against_gradient"]["verdict"], found["against_gradient"]["message"]) == (
        "skipped",
        why,
    )


def test_a_batch_has_value_and_gradient_judged(folder, capfd):
    code, found = lines(capfd, "right.py", "--inputs", "batch.npz")
    assert code == 0
    assert {name: (r["verdict"], r["hint"]) for name, r in found.items()} == {
        "value": ("pass", "inputs: batch.npz, the value"),
        "gradient": ("pass", "inputs: batch.npz, the gradient for random cotangents, seed 0"),
    }
    code, found = lines(capfd, "wrong.py", "--inputs", "batch.npz", "--seed", "3")
    assert (code, found["gradient"]["verdict"]) == (1, "wrong")
    assert found["gradient"]["hint"].endswith("random cotangents, seed 3")


def test_the_cotangents_of_a_file_are_used_and_the_rest_of_it_is_named(folder, capfd):
    plugin(folder, RIGHT.replace("return db *", "assert dx.max() < 1\n    return db *"), "seen.py")
    code, found = lines(capfd, "seen.py", "--inputs", "given.npz")
    assert code == 0
    assert found["gradient"]["hint"] == (
        "inputs: given.npz, the gradient for the cotangents dx of the file"
    )
    assert found["value"]["notes"] == ["not used: `q` of given.npz"]
    code, found = lines(capfd, "seen.py", "--inputs", "batch.npz", "--check", "gradient")
    assert (code, [*found], found["gradient"]["verdict"]) == (1, ["gradient"], "error")


def test_a_layout_is_that_of_the_cotangents_too(folder, capfd):
    text = RIGHT.replace("def linear_scan(a, b)", "def linear_scan(a, b)")
    text += """
inner, inner_vjp = linear_scan, linear_scan_vjp

def linear_scan(a, b):
    return inner(a.T, b.T).T

def linear_scan_vjp(dx, a, b):
    x = inner(a.T, b.T)
    db = np.zeros_like(b.T)
    state = 0
    for k in reversed(range(len(db))):
        state = dx.T[k] + state
        db[k] = state
        state = np.conj(a.T[k]) * state
    return (db * np.conj(np.concatenate([0 * x[:1], x[:-1]]))).T, db.T
"""
    plugin(folder, text, "turned.py")
    given = dict(np.load("given.npz"))
    np.savez("turned.npz", **{n: given[n].T for n in ("a", "b", "dx")})
    layout = ("--layout", "n l, n l -> n l")
    code, found = lines(capfd, "turned.py", "--inputs", "turned.npz", *layout)
    assert (code, {r["verdict"] for r in found.values()}) == (0, {"pass"})


@pytest.mark.long
def test_a_gradient_that_cannot_be_judged_says_why(folder, capfd):
    code, found = lines(capfd, "without.py", "--inputs", "given.npz")
    assert code == 0
    assert found["gradient"]["message"] == "given.npz has dx: needs linear_scan_vjp"
    code, found = lines(capfd, "without.py", "--inputs", "batch.npz")
    assert (code, [*found]) == (0, ["value"])
    infinite = np.array([[0.5], [np.inf]], np.float32)
    np.savez("infinite.npz", a=np.ones((2, 1), np.float32), b=infinite)
    _, found = lines(capfd, "right.py", "--inputs", "infinite.npz")
    assert found["gradient"]["message"] == "not judged where an argument is not finite"


BAD = {
    "shape": (np.ones((3, 2)), "`dx` has shape (3, 2), wanted (1, 4, 2)"),
    "complex": (np.ones((4, 2)) * 1j, "`dx` has type complex128, wanted float32"),
    "text": (np.full((4, 2), "x"), "`dx` has type <U1, wanted float32"),
    "too fine": (np.full((4, 2), 0.1), "`dx` has values that are not float32 numbers"),
}


@pytest.mark.parametrize("what", BAD)
def test_cotangents_that_do_not_fit_end_the_run_before_anything_is_judged(folder, capfd, what):
    given = dict(np.load("batch.npz"))
    np.savez("bad.npz", **given, dx=BAD[what][0])
    code, out, err = run(capfd, "verify", "right.py", "--inputs", "bad.npz")
    assert (code, "pass" in out) == (4, False)
    assert f"bad.npz: {BAD[what][1]}" in err
