"""A layout that does not fit what the function takes or returns: said once, with one that fits."""

import re
from functools import wraps

import numpy as np
import pytest
from judging import judged, plugin, run, scan

from refssm._declaration.layout import parse
from refssm.conformance.calling.calls.fitting import TRIES, fitting, misfit, place_of, reordered
from refssm.scan import LINEAR_SCAN
from refssm.ssd.recurrent import SSD_RECURRENT
from refssm.testing import implements

pytest_plugins = ["pytester"]

SIZES = {"b": 2, "l": 5, "g": 3, "h": 4, "p": 6, "n": 7}
TIME_FIRST = "l b n, l b n -> l b n"
ONCE = "no other check was run"


def time_first(a, b):
    return scan(a.swapaxes(0, 1), b.swapaxes(0, 1)).swapaxes(0, 1)


def vjp(dx, a, b):
    gradients = LINEAR_SCAN.bare_vjp(*(y.swapaxes(0, 1) for y in (dx, a, b)))
    return tuple(g.swapaxes(0, 1) for g in gradients)


RETURNS = {
    "turned": (lambda x: x.T, "(3, 2, 5)", "n b l"),
    "the catalog's": (lambda x: x.swapaxes(0, 1), "(2, 5, 3)", "b l n"),
    "merged": (lambda x: x.reshape(len(x), -1), "(5, 6)", "l (b n)"),
    "all merged": (lambda x: x.ravel(), "(30,)", "(l b n)"),
    "an axis more": (lambda x: x[:, None], "(5, 1, 2, 3)", "l 1 b n"),
    "an axis less": (lambda x: x[..., 0], "(5, 2)", ""),
    "a step less": (lambda x: x[1:], "(4, 2, 3)", ""),
}


@pytest.mark.parametrize("what", RETURNS)
def test_a_result_that_does_not_fit_is_one_failure_with_a_layout_that_fits(what):
    change, shape, axes = RETURNS[what]
    (result,) = judged("linear_scan", lambda a, b: change(time_first(a, b)), vjp=vjp,
                       profile="default", layout=TIME_FIRST, shrink=True)  # fmt: skip
    fits = re.escape(f"; a layout that fits: l b n, l b n -> {axes}") if axes else ""
    told = re.escape(f"`x` has shape {shape}, want (5, 2, 3) for the axes l b n (")
    assert re.fullmatch(rf"{told}test_misfits\.py:\d+\){fits}", result.message)
    assert (result.id, result.verdict) == ("linear_scan/value[float32]", "wrong")
    assert result.hint.startswith(ONCE)
    assert not result.shrunk


@pytest.mark.long
def test_the_layout_that_is_named_passes():
    for what in ("turned", "merged", "all merged", "an axis more"):
        change, _, axes = RETURNS[what]
        how = {"profile": "quick", "layout": f"l b n, l b n -> {axes}"}
        results = judged("linear_scan", lambda a, b, f=change: f(time_first(a, b)), "value", **how)
        assert [r.verdict for r in results] == ["pass"], what


def test_of_several_layouts_that_fit_equally_none_is_named():
    layout = parse(SSD_RECURRENT, "b l g h p, b l g h, b l g n, b l g n -> b l g h p")
    fits = [(2, 5, 3, 24), (2, 5, 12, 6), (2, 5, 4, 3, 6), (144, 5), (5, 6, 24)]
    told = ["b l g (h p)", "b l (g h) p", "b l h g p", "(b g h p) l", "l (b g) (h p)"]
    found = [fitting(layout, 0, shape, SIZES) for shape in fits]
    assert [other and " ".join(other.outputs[0]) for other in found] == told
    square = {**SIZES, "g": 4, "p": 4}
    nearest = fitting(layout, 0, (5, 2, 4, 4, 4), square)
    assert nearest is not None
    assert nearest.outputs[0] == tuple("lbghp")
    assert fitting(layout, 0, (4, 4, 4, 2, 5), square) is None
    assert misfit(layout.outputs[0], (2, 5, 3, 4, 6), SIZES) == ""
    assert misfit(("b", "unknown"), (2, 5), SIZES) == ""


def test_a_call_that_raises_in_every_type_is_one_failure_with_the_shapes_that_it_had():
    def refuses(a, b):
        raise ValueError("wanted (batch, time, channels)")

    (result,) = judged("linear_scan", refuses, profile="default", layout="l (b n), l b n -> l b n")
    assert result.verdict == "error"
    assert re.fullmatch(
        r"raised ValueError: wanted \(batch, time, channels\) \(test_misfits.py:\d+\); in its "
        r"layout the arguments have the shapes `a` \(5, 6\), `b` \(5, 2, 3\)",
        result.message,
    )
    assert result.hint.startswith(ONCE)


RAISING = {
    "in one other order": (lambda a: a.shape == (2, 5, 3), "b l n, b l n -> b l n"),
    "in a third order": (lambda a: a.shape == (3, 2, 5), "n b l, n b l -> n b l"),
    "in no order": (lambda a: False, ""),
    "in several orders": (lambda a: a.shape[0] != 5, ""),
}


@pytest.mark.parametrize("what", RAISING)
def test_where_a_call_raises_other_orders_of_its_axes_are_tried(what):
    accepts, other = RAISING[what]

    def picky(a, b):
        if not (accepts(a) and accepts(b)):
            return np.zeros((7, 1, 1)) + np.zeros((5, 2, 3))  # raises in NumPy's own code
        return a + b

    line = picky.__code__.co_firstlineno + 2
    (result,) = judged("linear_scan", picky, profile="default", layout=TIME_FIRST)
    told, _, fits = result.message.partition("; a layout that fits: ")
    assert told == (
        "raised ValueError: operands could not be broadcast together with shapes (7,1,1) (5,2,3) "
        f"(test_misfits.py:{line}); in its layout the arguments have the shapes `a` (5, 2, 3), "
        "`b` (5, 2, 3)"
    )
    assert fits == (f"{other} (tried: the shapes fit)" if other else "")
    assert result.hint.startswith(ONCE)


def test_the_order_in_which_the_values_are_right_is_told_though_others_fit():
    def heads_first(x, log_a, B, C):
        groups, heads = B.shape[1], x.shape[1]
        if heads % groups or log_a.shape[1] != heads:
            raise ValueError("heads come before time")
        rows = [a.reshape(a.shape[0], groups, -1, *a.shape[2:]) for a in (x, log_a, B, C)]
        return SSD_RECURRENT.reference(*rows).reshape(x.shape)

    layout = "b l (g h) p, b l (g h), b l g n, b l g n -> b l (g h) p"
    (result,) = judged("ssd_recurrent", heads_first, profile="default", layout=layout)
    told = "a layout that fits: b (g h) l p, b (g h) l, b g l n, b g l n -> b (g h) l p "
    assert told + "(tried: the values are right)" in result.message


def test_each_order_is_tried_once():
    tried = []

    def refuses(a, b):
        tried.append(a.shape)
        raise ValueError("no")

    judged("linear_scan", refuses, "value", types=("float32",), layout=TIME_FIRST)
    assert len(set(tried)) == 6  # the declared one, and each other order once
    assert len(tried) == 6


def test_other_orders_keep_merged_axes_and_the_nearest_comes_first():
    layout = parse(LINEAR_SCAN, "(b l) n, (b l) n -> (b l) n")
    assert [*map(str, reordered(layout))] == ["n (b l), n (b l) -> n (b l)"]
    layout = parse(LINEAR_SCAN, TIME_FIRST)
    assert len(reordered(layout)) == 5
    assert str(reordered(layout)[0]) in ("b l n, b l n -> b l n", "l n b, l n b -> l n b")
    many = parse(SSD_RECURRENT, "b l g h p, b l g h, b l g n, b l g n -> b l g h p")
    assert len(reordered(many)) == TRIES


def test_the_line_of_an_exception_is_the_authors_own():
    def calls_numpy(a, b):
        return np.linalg.solve(a[..., 0, 0], b)

    line = calls_numpy.__code__.co_firstlineno + 1
    (result,) = judged("linear_scan", calls_numpy, profile="default", layout=TIME_FIRST)
    assert re.search(rf"raised LinAlgError: .* \(test_misfits\.py:{line}\)", result.message)


def test_an_index_error_is_said_once_too():
    (result,) = judged("linear_scan", lambda a, b: a[0, 0, 0, 0], profile="default",
                       layout=TIME_FIRST)  # fmt: skip
    assert result.message.startswith("raised IndexError: too many indices")


def test_a_call_that_raises_in_some_types_only_is_judged_in_the_others():
    def single(a, b):
        if a.dtype != np.float32 or b.dtype != np.float32:
            raise TypeError("float32 only")
        return time_first(a, b)

    results = judged("linear_scan", single, "value", profile="default", layout=TIME_FIRST, cases=5)
    assert [r.verdict for r in results] == ["skipped", "skipped", "skipped", "pass"]


def test_without_a_layout_every_check_fails_as_before():
    results = judged("linear_scan", lambda a, b: scan(a, b)[:, 1:], profile="quick")
    assert len([r for r in results if r.failed]) > 3
    assert not any(r.hint.startswith(ONCE) for r in results)


def test_only_the_check_that_was_asked_for_says_it():
    (result,) = judged("linear_scan", time_first, "nan", "batch", layout="l b n, l b n -> b l n")
    assert (result.check, result.verdict) == ("nan", "wrong")
    assert result.message.endswith("a layout that fits: l b n, l b n -> l b n")


def test_a_gradient_that_does_not_fit_is_told_in_the_axes_of_its_argument():
    def turned(dx, a, b):
        da, db = vjp(dx, a, b)
        return da, db.T

    results = judged("linear_scan", time_first, "value", "gradient", vjp=turned, layout=TIME_FIRST)
    value, gradient = results
    assert (value.verdict, gradient.verdict) == ("pass", "wrong")
    told = r"`db` has shape \(.*\), want \(.*\) for the axes l b n \(test_misfits.py:\d+\)"
    assert re.fullmatch(told, gradient.message)


def test_the_place_of_a_function_is_its_file_and_line():
    line = time_first.__code__.co_firstlineno
    marked = implements("linear_scan")(time_first)
    assert place_of(marked) == f"test_misfits.py:{line}"
    assert place_of(wraps(time_first)(lambda *arrays: None)) == f"test_misfits.py:{line}"
    assert place_of(LINEAR_SCAN.reference) == ""
    assert place_of(np.add) == ""


TEXT = """
import numpy as np
from refssm import linear_scan as right
from refssm.testing import implements

@implements("linear_scan", layout="l b n, l b n -> l b n")
def ours(a, b):
    return right(a.swapaxes(0, 1), b.swapaxes(0, 1))
"""
KNOWN = """
[[known]]
id = "linear_scan/{}"
reason = "known"
expires = 2999-01-01
"""


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one process", "two"])
def test_the_command_says_it_once(options, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capfd, "verify", plugin(tmp_path, TEXT), *options)
    failures = [line for line in out.splitlines() if line.startswith("FAIL")]
    assert (code, len(failures)) == (1, 1)
    assert "(my_ops.py:6); a layout that fits: l b n, l b n -> b l n" in out
    assert "(1 of 1 check fails, " in out.splitlines()[0]


@pytest.mark.long
def test_a_known_failure_of_one_check_does_not_hide_a_layout_that_does_not_fit(
    capfd, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = plugin(tmp_path, TEXT)
    for id, wanted in (("value[float32]", 1), ("*[*]", 0)):
        (tmp_path / "known.toml").write_text(KNOWN.format(id), encoding="utf-8")
        code, out, _ = run(capfd, "verify", name, "--profile", "quick", "--known", "known.toml")
        assert code == wanted, out


MARKED = """
import pytest
from refssm import linear_scan

@pytest.mark.refssm("linear_scan", layout="b n l, b n l -> b n l"OPTIONS)
def test_scan(a, b):
    return linear_scan(a.swapaxes(1, 2), b.swapaxes(1, 2))
"""
PLUGIN = ("--disable-plugin-autoload", "-p", "refssm.conformance.pytest_plugin")
ALONE = (*PLUGIN, "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning",
         "--refssm-profile=quick")  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("check", ["value", "nan", "alias"])
def test_a_suite_of_tests_says_it_once_whatever_is_chosen(check, pytester):
    pytester.makepyfile(test_ops=MARKED.replace("OPTIONS", ""))
    pytester.runpytest(*ALONE).assert_outcomes(failed=1, skipped=18)
    result = pytester.runpytest(*ALONE, "-k", check)
    assert result.parseoutcomes()["failed"] == 1
    assert "a layout that fits: b n l, b n l -> b l n" in result.stdout.str()


@pytest.mark.long
def test_an_expected_failure_of_one_check_does_not_hide_it_in_a_suite(pytester):
    expected = ', xfail={"value[float32]": "why"}'
    pytester.makepyfile(test_ops=MARKED.replace("OPTIONS", expected))
    pytester.runpytest(*ALONE).assert_outcomes(failed=1, xfailed=1, skipped=17)
