"""`only` is asked for every case that a call gets, and must be steady."""

import itertools

import numpy as np
import pytest
from judging import judged, scan

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.usage_error import UsageError
from refssm.testing import check


def halved(x):
    return {**x, "a": x["a"] / 2}


def cut_once_more(x):
    return {name: a[..., : max(1, a.shape[-2] - 1), :] for name, a in x.items()}


def declines_its_own(x):
    return None if (x["a"] == 0).all() else {**x, "a": 0 * x["a"]}


@pytest.mark.parametrize("only", [halved, cut_once_more, declines_its_own])
def test_an_only_that_changes_its_own_result_is_refused_in_one_sentence(only):
    with pytest.raises(UsageError, match=r"^linear_scan: `only` must not change a case") as caught:
        judged("linear_scan", scan, "value", types=("float32",), only=only)
    assert "\n" not in str(caught.value)


def test_an_only_that_changes_its_answer_is_refused_in_one_sentence():
    turns = itertools.count()

    def whim(x):
        return x if next(turns) % 5 else None

    with pytest.raises(UsageError, match="`only` must give the same answer whenever it is asked"):
        judged("linear_scan", scan, "value", types=("float32",), only=whim)
    with pytest.raises(ValueError, match=r"^check: linear_scan: `only` must give the same answer"):
        check("linear_scan", scan, profile="quick", checks=("value",), only=whim)


def test_an_only_may_write_into_what_it_is_given():
    def clipped(x):
        np.clip(x["a"].real, -0.5, 0.5, out=x["a"].real if np.iscomplexobj(x["a"]) else x["a"])
        return x

    (result,) = judged("linear_scan", scan, "value", types=("float32",), only=clipped)
    assert result.verdict == "pass"


LAWS = ("value", "additive", "scaling", "zero", "batch", "prefix", "causal", "shift", "nan")


@pytest.mark.long
def test_no_call_gets_a_case_that_only_declines():
    asked = []

    def ordinary(x):
        inside = all((np.abs(a) <= 2).all() and (np.abs(a) >= 2.0**-9).all() for a in x.values())
        return x if inside and x["b"].shape[-2] % 2 else None

    def watching(a, b):
        asked.append(ordinary({"a": a, "b": b}) is not None)
        return scan(a, b)

    results = judged("linear_scan", watching, *LAWS, types=("float32",), only=ordinary)
    assert all(asked)
    assert len(asked) > 25
    assert not {r.verdict for r in results} & {"wrong", "error", "inaccurate"}


@pytest.mark.parametrize("check_", ["value", "prefix"])
def test_shrinking_does_not_leave_what_only_accepts(check_):
    asked = []

    def large(x):
        return x if (np.abs(x["a"]) >= 0.25).all() and x["b"].shape[-2] >= 16 else None

    def late(a, b):
        asked.append(large({"a": a, "b": b}) is not None)
        x = scan(a, b)
        x[..., 40:, :] *= 2
        x[..., -1:, :] *= 3
        return x

    how = {"types": ("float32",), "shrink": True, "profile": "default"}
    (result,) = judged("linear_scan", late, check_, only=large, **how)
    assert result.verdict == "wrong"
    assert all(asked)
    assert int(result.smallest.split()[0].removeprefix("l=")) >= 16


def half_of(name):
    """An `only` which returns the first half of one argument, and the others whole."""

    def only(x):
        return {**x, name: x[name][..., : max(1, x[name].shape[-1] // 2)]}

    return only


@pytest.mark.parametrize(
    ("name", "argument", "sentence"),
    [
        ("linear_scan", "a", "`b` has n=3, but earlier arguments have n=1 "),
        ("hope_step", "x", "`x` has n=2, but earlier arguments have n=5 "),  # has no length
    ],
)
def test_an_only_whose_arguments_disagree_is_refused_in_one_sentence(name, argument, sentence):
    reference = operator_named(name).reference
    with pytest.raises(UsageError) as caught:
        judged(name, reference, "value", types=("float32",), only=half_of(argument))
    wanted = f"{name}: `only` must return the arguments of one call: {sentence}"
    assert str(caught.value).startswith(wanted), caught.value
    assert "\n" not in str(caught.value)
