"""The cases that people draw for laws of their own."""

import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

import refssm
from refssm.testing import Budget, assert_right, bound, cases, check, expected

LAYOUT = "l b d, l b d, d n, l b n, l b n -> l b d"
SEARCH = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])
few = settings(max_examples=20, deadline=None, database=None, derandomize=True)


def first(strategy, wanted=lambda case: True):
    """The first case that is wanted; the very first one is the simplest."""
    return find(strategy, wanted, settings=SEARCH)


def test_a_call_has_the_arguments_in_order_and_by_name_and_the_keywords():
    case = first(cases("discretize_gbt", where=["n=3..3", "m=2..2"]))
    assert list(case.arguments) == ["A", "B", "dt"]
    assert [a.shape[-2:] for a in case.arrays[:2]] == [(3, 3), (3, 2)]
    assert list(case.statics) == ["alpha"]
    assert (case.operator, case.dtype) == ("discretize_gbt", "float32")
    assert case.sizes == {"n": 3, "m": 2}
    assert {a.dtype for a in case.arrays} == {np.dtype(np.float32)}
    assert_right(case, refssm.discretize_gbt(*case.arrays, **case.statics))


@pytest.mark.parametrize(
    ("name", "dtype", "arrays"),
    [
        ("linear_scan", None, "float32"),
        ("linear_scan", np.float64, "float64"),
        ("linear_scan", np.dtype("complex64"), "complex64"),
        ("linear_scan", "bfloat16", "float32"),
        ("cauchy_kernel", None, "complex64"),
    ],
)
def test_the_type_is_the_first_one_of_the_operator_or_the_one_that_is_asked_for(
    name, dtype, arrays
):
    case = first(cases(name, dtype, kinds="complex"))
    assert {a.dtype.name for a in case.arrays} <= {arrays, arrays.replace("complex64", "float32")}
    assert arrays in {a.dtype.name for a in case.arrays}


def test_a_failure_shrinks_to_the_first_length_that_fails_and_simple_values():
    whole = settings(SEARCH, phases=[Phase.generate, Phase.shrink])
    case = find(cases("linear_scan"), lambda case: case.sizes["l"] > 64, settings=whole)
    assert repr(case) == "<linear_scan float32 l=65 n=1; a=1 throughout, b=1 throughout>"


def test_a_preset_is_not_simpler_than_a_usual_case():
    whole = settings(SEARCH, phases=[Phase.generate, Phase.shrink])
    case = find(cases("cauchy_kernel"), lambda case: case.sizes["n"] > 4, settings=whole)
    assert "preset" not in repr(case)


@pytest.mark.parametrize("name", ["selective_scan", "cauchy_kernel", "discretize_diagonal_zoh"])
def test_presets_and_cases_close_to_a_structure_are_among_the_cases(name):
    assert "preset" in f"{first(cases(name), lambda case: 'preset' in f'{case}')}"

    def structured(case):
        textures = {knob.texture for knob in case._call.case.knobs.values()}
        return bool(textures & {"alike", "lowered", "decayed", "ten"})

    if name != "cauchy_kernel":
        assert structured(first(cases(name), structured))


def test_tame_cases_are_no_presets_and_never_underflow():
    @given(cases("selective_scan", tame=True))
    @few
    def law(case):
        assert case._call.case.preset is None
        assert np.abs(expected(case)).max(initial=0) < 1e12

    law()


def test_ranges_and_the_number_of_entries_are_kept():
    @given(cases("selective_scan", where=["l=2..9", "dt=1e-3..1e-1", "re(A)=-5..-1"], entries=64))
    @few
    def law(case):
        dt, A = case.arguments["dt"], case.arguments["A"]
        assert 2 <= case.sizes["l"] <= 9
        assert ((dt == 0) | ((dt >= 0.99e-3) & (dt <= 0.101))).all()
        assert ((A == 0) | ((A >= -5.01) & (A <= -0.99))).all()
        assert case.sizes["l"] * case.sizes["n"] <= 64

    law()


def test_a_function_that_writes_into_its_arguments_changes_no_case():
    case = first(cases("linear_scan"))
    before, right = case.arrays, expected(case)
    for a in case.arrays:
        a[...] = np.nan
    for a, b in zip(case.arrays, before, strict=True):
        assert np.array_equal(a, b)
    expected(case)[...] = np.nan
    assert np.array_equal(expected(case), right)


def scan(u, dt, A, B, C):
    """A selective scan of arrays with time first, and no groups."""
    last = [np.moveaxis(x, 0, -1) for x in (u, dt)]
    both = [np.moveaxis(x, 0, -2)[:, None] for x in (B, C)]
    return np.moveaxis(refssm.selective_scan(*last, A, *both), -1, 0)


@pytest.mark.long
def test_a_layout_is_that_of_arguments_values_bounds_and_gradients():
    @given(cases("selective_scan", layout=LAYOUT, where="n=2..4"))
    @few
    def law(case):
        y = scan(*case.arrays)
        assert y.shape[0] == case.sizes["l"]
        assert (np.abs(y - expected(case)) <= bound(case, y)).all()
        assert_right(case, y)
        gradients = expected(case, case.cotangents)
        assert [g.shape for g in gradients] == [a.shape for a in case.arrays]
        assert_right(case.changed(u=case.arguments["u"] * 0), 0 * y)

    law()
    case = first(cases("selective_scan", layout=LAYOUT, where="l=3..3"))
    wrong = scan(*case.arrays)
    wrong[2] += 1
    with pytest.raises(AssertionError, match=r"order b d l\)"):
        assert_right(case, wrong)
    with pytest.raises(ValueError, match=r"`y` has shape .* want axes l b d"):
        bound(case, wrong[0])


def test_axes_that_a_layout_leaves_out_have_length_one():
    case = first(cases("linear_scan", layout="l n, l n -> l n"), lambda case: case.sizes["l"] == 3)
    assert {a.ndim for a in case.arrays} == {2}
    x = refssm.linear_scan(*case.arrays)
    assert x.shape == bound(case, x).shape == expected(case).shape
    assert_right(case, x)


def test_a_changed_case_has_its_own_values_and_the_same_rest():
    case = first(cases("linear_scan", where="l=5..5"))
    b = case.arguments["b"]
    double = case.changed(b=2 * b)
    assert np.array_equal(double.arguments["b"], 2 * b)
    assert np.array_equal(double.arguments["a"], case.arguments["a"])
    assert np.array_equal(expected(double), 2 * expected(case))
    b[...] = 7
    assert not (double.arguments["b"] == 7).any()
    longer = first(cases("vandermonde_kernel")).changed(l=9)
    assert longer.statics == {"l": 9}
    assert expected(longer).shape[-1] == 9


def test_steps_are_a_part_of_the_time_and_the_whole_of_the_rest():
    case = first(cases("linear_scan_from", where=["l=5..5", "n=1..1"]))
    part = case.steps(2, -1)
    assert part.sizes == {"l": 2, "n": 1}
    assert np.array_equal(part.arguments["b"], case.arguments["b"][..., 2:-1, :])
    assert np.array_equal(part.arguments["x0"], case.arguments["x0"])
    assert case.steps(None, None).sizes == case.sizes
    assert case.steps(4, 2).sizes["l"] == 0
    assert first(cases("vandermonde_kernel", where="l=5..5")).steps(0, 3).statics == {"l": 3}


@pytest.mark.parametrize("accuracy", [Budget(C=64), Budget(computes="tf32")])
def test_a_budget_makes_the_bounds_larger(accuracy):
    usual, more = (first(cases("linear_scan", accuracy=a)) for a in (None, accuracy))
    x = refssm.linear_scan(*usual.arrays)
    assert (bound(more, x) > 3 * bound(usual, x)).all()


SAYS = {
    "selectve_scan": "not an operator of the catalog; did you mean selective_scan?",
    7: "wanted the name of an operator, got 7",
}
WRONG = {
    "type": ({"dtype": "float3"}, "no type 'float3'; did you mean float32? wanted one of float32,"),
    "complex": ({"name": "cauchy_kernel", "dtype": "float32"}, "wanted one of complex64, compl"),
    "constructor": ({"name": "nplr_legs", "dtype": "complex64"}, "wanted one of complex128"),
    "name": ({"where": "q=1..2"}, "where q=1..2: unknown name 'q'; wanted one of a, b, l, n"),
    "range": ({"where": "a=5"}, "where 'a=5' is not NAME=LOW..HIGH"),
    "outside": ({"where": "a=500..900"}, "where a=500..900 is outside of the domain"),
    "no text": ({"where": 3}, 'where: wanted a range such as "l=1..64", got 3'),
    "layout": ({"layout": "l n -> l n"}, "layout 'l n -> l n' must have 2 arguments"),
    "entries": ({"entries": 0}, "`entries` must be a whole number of 1 or more, got 0"),
    "kinds": ({"kinds": "real"}, "unknown kinds 'real'; wanted one of any, complex"),
    "tame": ({"tame": "yes"}, "`tame` must be True or False, got 'yes'"),
    "accuracy": ({"accuracy": 16}, "`accuracy` must be a Budget, got 16"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAYS)
def test_an_unknown_operator_is_named_with_the_nearest_one(name):
    with pytest.raises(ValueError, match=r"^cases: ") as told:
        cases(name)
    assert SAYS[name] in f"{told.value}"
    assert "\n" not in f"{told.value}"


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_keyword_is_one_sentence_with_what_was_wanted_and_what_came(what):
    given, said = WRONG[what]
    with pytest.raises(ValueError, match=r"^cases: ") as told:
        cases(**{"name": "linear_scan", **given})
    assert said in f"{told.value}"
    assert "\n" not in f"{told.value}"


def test_a_change_that_does_not_fit_is_one_sentence():
    case = first(cases("linear_scan"))
    with pytest.raises(ValueError, match=r"changed: unknown argument of linear_scan 'u'; .* a, b"):
        case.changed(u=1)
    with pytest.raises(TypeError, match="changed: `b` has type float64, want float32: round it"):
        case.changed(b=case.arguments["b"].astype(float))
    with pytest.raises(ValueError, match="changed: linear_scan: `b` has l=7"):
        case.changed(b=np.ones((7, 1), np.float32))
    flags = first(cases("linear_scan_packed"))
    with pytest.raises(TypeError, match="`resets` has type float32, want bool"):
        flags.changed(resets=np.ones(flags.sizes["l"], np.float32))
    half = first(cases("linear_scan", "bfloat16"))
    with pytest.raises(TypeError, match="values that bfloat16 does not have"):
        half.changed(b=half.arguments["b"] + np.float32(0.001))
    half.changed(b=half.arguments["b"] * 2)


def test_steps_that_are_none_are_one_sentence():
    with pytest.raises(ValueError, match="steps: discretize_zoh has no time axis l"):
        first(cases("discretize_zoh")).steps(0, 1)
    with pytest.raises(ValueError, match="wanted a start of 0, got 1: `l` of vandermonde_kernel"):
        first(cases("vandermonde_kernel", where="l=3..3")).steps(1, 2)


def test_without_hypothesis_cases_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.setattr("refssm.testing.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="needs Hypothesis: pip install hypothesis"):
        cases("linear_scan")


def test_a_strategy_is_printed_by_the_operator_and_the_type():
    assert "linear_scan float64" in repr(cases("linear_scan", "float64"))


@pytest.mark.long
def test_check_and_assert_right_agree_on_a_scan_that_is_late():
    def late(a, b):
        return np.roll(refssm.linear_scan(a, b), 1, axis=-2)

    with pytest.raises(AssertionError):
        check("linear_scan", late, checks=("value",), dtypes=("float32",))
    case = first(cases("linear_scan", where="l=2..2"))
    with pytest.raises(AssertionError, match=r"grade F .* worst x\[0, \d, 0\]: got"):
        assert_right(case, late(*case.arrays))
