"""Marks that cannot be: each fails as an item of its own, and the rest of the file runs."""

import json

import pytest
from judging import plugin
from judging import run as judged
from test_pytest_plugin import ALONE, HEAD, RIGHT, outcomes, refused

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester):
    """Run pytest on a file of these texts."""

    def ran(*texts, options=()):
        pytester.makepyfile(test_ops=HEAD + "".join(texts).replace("OPTIONS", ""))
        return pytester.runpytest(*ALONE, "--refssm-profile=quick", *options)

    return ran


NAMES = "framework, device, dtypes, layout, vjp"
MARKS = {
    "no such operator": (
        '"liner_scan"',
        "`liner_scan` is no operator; did you mean linear_scan? `refssm list` prints all names",
    ),
    "no operator": ("", f"wanted the name of an operator, then any of {NAMES}"),
    "two words": (
        '"linear_scan", "torch"',
        "wanted the operator, then keywords; got 'torch' without a keyword",
    ),
    "no such option": (
        '"linear_scan", framwork="jax"',
        f"unknown keyword `framwork`; did you mean framework? wanted one of {NAMES}",
    ),
    "no such option of pytest": (
        '"linear_scan", profil="quick"',
        f"unknown keyword `profil`; did you mean profile? wanted one of {NAMES}",
    ),
    "a name by keyword": ('name="linear_scan"', "unknown keyword `name`; wanted one of framework"),
    "no such framework": (
        '"linear_scan", framework="torhc"',
        "unknown framework 'torhc'; did you mean torch? wanted one of numpy, torch",
    ),
    "no such type": (
        '"linear_scan", dtypes="flaot32"',
        "unknown type 'flaot32'; did you mean float32? wanted one of float32",
    ),
    "no such layout": (
        '"linear_scan", layout="b x, b x -> b x"',
        "gives `a` the axes b x, wanted b l n in some order",
    ),
    "no autodiff": ('"linear_scan", vjp=True', "numpy has no autodiff for vjp=True"),
    "no such profile": (
        '"linear_scan", profile="quik"',
        "profile: wanted one of quick, default, thorough, got 'quik'; did you mean quick?",
    ),
    "no profile at all": ('"linear_scan", profile=[]', "default, thorough, got []"),
    "no seed": ('"linear_scan", seed="1"', "seed: wanted a whole number of 0 or more, got '1'"),
    "no reasons": (
        '"linear_scan", xfail=["value[float32]"]',
        'xfail: wanted a dict such as {"value[float32]": "why"}, got [\'value[float32]\']',
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("what", MARKS)
def test_a_mark_that_cannot_be_fails_as_an_item_of_its_own(run, what):
    mark, told = MARKS[what]
    wrong = RIGHT.replace('"linear_scan"OPTIONS', mark).replace("test_scan", "test_wrong")
    result = run(RIGHT, wrong, options=("-k", "nan[float32]"))
    assert refused(result, told)
    assert outcomes(result) == {"passed": 1, "failed": 1}
    line = (HEAD + RIGHT + wrong).splitlines().index(f"@pytest.mark.refssm({mark})")
    assert f"in the mark of test_wrong at test_ops.py:{line}" in result.stdout.str()
    again = "again: pytest --refssm-profile=quick test_ops.py::test_wrong::mark"
    assert again in result.stdout.str()


def test_two_marks_are_refused(run):
    twice = RIGHT.replace("@", '@pytest.mark.refssm("linear_scan")\n@', 1)
    assert refused(run(twice), "2 marks `refssm`, wanted one for a function")


def test_a_method_is_refused(run):
    method = RIGHT.replace("\n", "\n    ").replace("(a, b):", "(self, a, b):")
    result = run("class TestScan:", method)
    assert refused(result, "a method of a class: mark a function of the module")


MARKED = """
import numpy as np
import pytest


def back(dx, a, b):
    return dx * 0, dx * 0


@pytest.mark.refssm("linear_scan", layout="l b n, l b n -> l b n", dtypes=("float64",), vjp=back)
def test_time_first(a, b):
    assert b.ndim == 3  # else the judge would call it slice by slice
    x = np.array(b)
    for k in range(1, len(x)):
        x[k] += a[k] * x[k - 1]
    return x


@pytest.mark.refssm("dense_scan", "torch")
def test_refused_by_pytest(A, b):
    return b
"""


SHORT = """
import numpy as np


@pytest.mark.refssm("linear_scan", dtypes="float32", where=WHERE)
def test_short(a, b):
    assert b.shape[-2] <= 5
    x = np.array(np.broadcast_arrays(a, b)[1])
    for k in range(1, x.shape[-2]):
        x[..., k, :] += a[..., k, :] * x[..., k - 1, :]
    return x
"""
NO_RANGE = {
    "0": "where: wanted a range such as",
    '"l=9..1"': "where 'l=9..1' is not a range: LOW must not exceed HIGH",
    '("l=1..5", "q=1..2")': "where q=1..2: unknown name 'q'",
}


def test_a_mark_limits_what_is_drawn(run):
    text = SHORT.replace("WHERE", '("l=1..5", "a=-1..1")')
    assert outcomes(run(text, options=("-k", "value"))) == {"passed": 1}


@pytest.mark.parametrize("where", NO_RANGE)
def test_a_range_that_cannot_be_fails_as_the_mark(run, where):
    result = run(SHORT.replace("WHERE", where), options=("-k", "value"))
    assert refused(result, NO_RANGE[where])


@pytest.mark.long
def test_verify_judges_a_function_as_its_mark_says(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, MARKED)
    checks = ("--check", "value", "--check", "gradient", "--profile", "quick", "--no-config")
    code, out, err = judged(capfd, "verify", "my_ops.py", *checks, "--json")
    results = json.loads(out)["results"]
    assert (code, err) == (1, "")
    told = [(r["operator"], r["check"], r["dtype"], r["verdict"]) for r in results]
    assert told == [
        ("linear_scan", "value", "float64", "pass"),
        ("linear_scan", "gradient", "float64", "wrong"),  # by the mark's own function
    ]
