"""An author's declarations: `implements`, `Budget`, `check`."""

import re

import numpy as np
import pytest
from judging import judged, plugin, run, scan, verdicts

import refssm
from refssm.conformance.report import lines
from refssm.testing import Budget, Declaration, Marked, check, implements
from refssm.vandermonde import VANDERMONDE_KERNEL

KEYWORDS = "wanted one of framework, device, dtypes, layout, vjp, only, accuracy, ftz, determ"
REFUSED = {
    "no operator": (
        {"name": "liner_scan"},
        "`liner_scan` is no operator; did you mean linear_scan? `refssm list` prints all names",
    ),
    "no name": (
        {"name": ""},
        "wanted the name of an operator, then any of framework, device, dtypes",
    ),
    "keyword": ({"dtype": "float32"}, f"unknown keyword `dtype`; did you mean dtypes? {KEYWORDS}"),
    "framework": (
        {"framework": "mlx"},
        "unknown framework 'mlx'; wanted one of numpy, torch, jax, cupy",
    ),
    "device of JAX": (
        {"framework": "torch", "device": "gpu"},
        "unknown device 'gpu' for framework 'torch'; wanted one of cpu, cuda, mps",
    ),
    "type": (
        {"dtypes": ("float32", "int8")},
        "unknown type 'int8'; wanted one of float32, float64, complex64, complex128, float16",
    ),
    "autodiff": (
        {"vjp": True},
        "numpy has no autodiff for vjp=True; write a function linear_scan_vjp",
    ),
    "kinds": ({"kinds": "real"}, "unknown kinds 'real'; wanted one of any, complex"),
    "kinds and types": (
        {"kinds": "complex", "dtypes": ("float32", "complex64")},
        'kinds="complex" leaves out float32, which `dtypes` declares: drop one of the two',
    ),
    "kinds of a real operator": (
        {"name": "mamba_layer", "kinds": "complex"},
        'kinds="complex": mamba_layer has no argument of complex numbers',
    ),
    "autodiff of CuPy": ({"vjp": True, "framework": "cupy"}, "cupy has no autodiff for vjp=True"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_declaration_that_cannot_be_is_refused_in_one_sentence(what):
    declared, sentence = REFUSED[what]
    with pytest.raises(ValueError, match="^implements: " + re.escape(sentence)) as refused:
        implements(**({"name": "linear_scan"} | declared))
    assert "\n" not in str(refused.value)


def test_a_layout_that_is_none_is_refused_where_it_is_declared():
    with pytest.raises(ValueError, match=r"^linear_scan: layout 'b l, b l n -> b l n' gives `a`"):
        implements("linear_scan", layout="b l, b l n -> b l n")


@pytest.mark.parametrize("C", [0.5, 1025, -16, float("nan"), float("inf")])
def test_a_budget_has_room_between_1_and_1024(C):
    with pytest.raises(ValueError, match=rf"^Budget: `C` must be between 1 and 1024, got {C!r}$"):
        Budget(C=C)


def test_a_budget_names_an_arithmetic_that_is_known():
    known = "float64, float32, tf32, float16, bfloat16$"
    with pytest.raises(
        ValueError, match=r"^Budget: unknown arithmetic 'fp8'; wanted one of " + known
    ):
        Budget(computes="fp8")


def test_a_marked_function_is_the_function_itself_with_its_declaration():
    marked = implements("linear_scan", dtypes=("float64",), ftz=True)(f := lambda a, b: scan(a, b))
    assert marked is f
    assert f.__refssm__ == Declaration("linear_scan", dtypes=("float64",), ftz=True)


def test_one_type_may_be_given_as_one_string():
    marked = implements("linear_scan", dtypes="float64")(lambda a, b: scan(a, b))
    assert marked.__refssm__.dtypes == ("float64",)
    assert [r.dtype for r in judged("linear_scan", scan, "value", dtypes=("float64",))] == [
        "float64"
    ]


class Slotted:
    """Callable, but accepts no attributes."""

    __slots__ = ()

    def __call__(self, a, b):
        return scan(a, b)

    def method(self, a, b):
        return scan(a, b)


UNMARKABLE = [Slotted(), Slotted().method, divmod]


@pytest.mark.parametrize("function", UNMARKABLE, ids=("object", "method", "builtin"))
def test_a_function_that_holds_no_attributes_is_wrapped(function):
    marked = implements("linear_scan", dtypes="float32")(function)
    assert isinstance(marked, Marked)
    assert marked.__refssm__ == Declaration("linear_scan", dtypes=("float32",))
    assert marked.__name__ == getattr(function, "__name__", "linear_scan")
    ones = np.ones((1, 1), np.float32)
    assert np.array_equal(marked(ones, ones), function(ones, ones))


@pytest.mark.long
def test_a_wrapped_function_is_found_in_a_file_and_judged_by_its_own_declaration(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    text = "\n".join([
        "from refssm.testing import implements, Budget",
        "class Bare:",
        "    __slots__ = ()",
        "    def __call__(self, a, b): return {}",
        "kernel = implements('causal_convolution_direct', dtypes='float64')(Bare())",
    ])  # fmt: skip
    right = plugin(tmp_path, text.format("refssm.causal_convolution_direct(a, b)"), "right.py")
    (tmp_path / right).write_text(
        "import refssm\n" + (tmp_path / right).read_text(encoding="utf-8"), encoding="utf-8"
    )
    result, out, _ = run(capfd, "verify", "-v", right, "--check", "value")
    assert result == 0
    assert "pass causal_convolution_direct/value[float64]" in out
    result, out, _ = run(
        capfd, "verify", plugin(tmp_path, text.format("a * b")), "--check", "value"
    )
    assert result == 1
    assert "FAIL causal_convolution_direct/value[float64]" in out


SEEN = []


def length_in_blocks(case):
    """A kernel that computes 64 outputs at a time."""
    SEEN.append((sorted(case), type(case["l"])))
    l = case["l"] // 64 * 64
    return {**case, "l": l} if l else None


def kernel_in_blocks(v, x, *, l):
    assert l % 64 == 0
    return VANDERMONDE_KERNEL.reference(v, x, l=l)


def second_block_wrong(v, x, *, l):
    k = kernel_in_blocks(v, x, l=l)
    k[..., 64:128] *= 1.5
    return k


def test_what_only_makes_of_a_keyword_argument_is_what_is_judged():
    checks = ("value", "prefix", "additive", "batch", "alias", "strides")
    given = {"only": length_in_blocks, "dtypes": ("float32",)}
    results = judged("vandermonde_kernel", kernel_in_blocks, *checks, **given)
    assert verdicts(results) == dict.fromkeys(checks, "pass")
    value = results[0]
    assert 0 < value.declined < 25 < value.examples  # others were drawn in their place
    told = f"{value.examples} cases, declined {value.declined} of {value.examples}"
    assert told in lines.facts(value)
    assert set(map(str, SEEN)) == {"(['l', 'v', 'x'], <class 'int'>)"}
    (wrong,) = judged("vandermonde_kernel", second_block_wrong, "value", **given)
    assert wrong.verdict == "wrong"
    assert "64 ≤ l ≤ 127" in wrong.message or "l ≥ 64 wrong" in wrong.message


def whole_blocks(case):
    """Whole blocks of 64 steps, and no decay below a half."""
    l = case["b"].shape[-2] // 64 * 64
    a = np.where(np.abs(case["a"]) < 0.5, 0.5, case["a"]).astype(case["a"].dtype)
    return {"a": a[..., :l, :], "b": case["b"][..., :l, :]} if l else None


def scan_in_blocks(a, b):
    assert b.shape[-2] % 64 == 0
    assert np.abs(a).min() >= 0.5
    return scan(a, b)


def reading_ahead(a, b):
    return scan_in_blocks(a, b) + b[..., -1:, :]


def test_a_keyword_number_beside_only_is_what_was_drawn():
    met = set()

    def weighted(A, B, dt, *, alpha):
        met.add(alpha)
        return refssm.discretize_gbt(A, B, dt, alpha=alpha)

    (result,) = judged(
        "discretize_gbt", weighted, "value", only=lambda case: case, dtypes=("float32",)
    )
    assert result.verdict == "pass"
    assert 0.5 in met  # a size is an integer, a weight is not


@pytest.mark.long
def test_only_may_shorten_and_change_arguments_and_the_laws_in_time_still_hold():
    laws = ("value", "prefix", "causal")
    given = {"only": whole_blocks, "dtypes": ("float32",)}
    results = judged("linear_scan", scan_in_blocks, *laws, profile="default", **given)
    assert verdicts(results) == dict.fromkeys(laws, "pass")
    assert all(0 < r.declined < r.examples for r in results)
    wrong = judged("linear_scan", reading_ahead, *laws, profile="default", **given)
    assert verdicts(wrong) == dict.fromkeys(laws, "wrong")


def in_blocks_or_not_at_all(a, b):
    if b.shape[-2] % 64:
        raise NotImplementedError("whole blocks only")
    return scan(a, b)


@pytest.mark.parametrize("name", ["value", "prefix", "unchanged", "alias", "repeat", "strides"])
def test_a_function_without_only_may_decline_in_any_check(name, monkeypatch):
    # whole blocks are few: on a slow machine the time to draw them would decide
    monkeypatch.setattr("refssm.conformance.checks.sweep.REDRAW_SECONDS", np.inf)
    (result,) = judged("linear_scan", in_blocks_or_not_at_all, name, dtypes=("float32",))
    assert result.verdict in ("pass", "skipped")


@pytest.mark.long
@pytest.mark.parametrize(
    ("only", "verdict", "told"),
    [
        (lambda case: None, "skipped", "declined all cases"),
        (lambda case: case["q"], "error", "`only` raised KeyError: 'q' (test_implements.py:"),
        (lambda case: {"a": case["a"]}, "error", "`only` raised KeyError: 'b'"),
    ],
)
def test_an_only_that_keeps_nothing_is_told(only, verdict, told):
    (result,) = judged("linear_scan", scan, "value", only=only, dtypes=("float32",))
    assert (result.verdict, result.message[: len(told)]) == (verdict, told)


@pytest.mark.long
def test_check_is_silent_where_all_is_right_and_tells_where_not():
    check("linear_scan", scan, profile="quick", checks=("value", "causal"))
    with pytest.raises(AssertionError) as failed:
        check("linear_scan", reading_ahead_of_all, profile="quick", checks=("value", "causal"))
    told = str(failed.value).splitlines()
    assert told[1].startswith("FAIL linear_scan/value[float32]   grade F   ratio ")
    assert told[2].startswith("  worst x[")
    assert any(line.startswith("FAIL linear_scan/causal[float32]") for line in told)


def reading_ahead_of_all(a, b):
    return scan(a, b) + b[..., -1:, :]


def test_check_judges_a_gradient_by_hand():
    from refssm.scan import LINEAR_SCAN

    right, quick = LINEAR_SCAN.bare_vjp, {"profile": "quick", "checks": ("gradient",)}
    check("linear_scan", scan, vjp=right, dtypes="float32", **quick)
    with pytest.raises(AssertionError, match=r"FAIL linear_scan/gradient\[float32\]"):
        check("linear_scan", scan, vjp=lambda *x: right(*x)[::-1], dtypes="float32", **quick)


def nearly(a, b):
    """Every result that is not an integer has an error of forty roundings."""
    x = scan(a, b)
    return np.where(x == np.round(x), x, x * np.float32(1 + 40 * 2.0**-24)).astype(x.dtype)


@pytest.mark.long
def test_check_goes_by_what_the_function_itself_declares():
    settings = {"profile": "quick", "checks": ("value",)}
    with pytest.raises(AssertionError, match=r"allowed 16"):
        check("linear_scan", nearly, dtypes="float32", **settings)
    wide = implements("linear_scan", accuracy=Budget(C=64), dtypes="float32")
    check("linear_scan", wide(lambda a, b: nearly(a, b)), **settings)


def test_check_adds_to_what_the_function_declares():
    turned = implements("linear_scan", layout="b n l, b n l -> b n l", dtypes="float32")(
        lambda a, b: nearly(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)
    )
    check("linear_scan", turned, profile="quick", checks=("value",), accuracy=Budget(C=64))


def test_a_type_that_was_asked_for_and_not_declared_is_the_one_that_is_skipped():
    (result,) = judged("linear_scan", scan, types=("complex64",), dtypes=("float64", "float32"))
    assert (result.verdict, result.dtype) == ("skipped", "complex64")
    assert result.message == "declared only for float64, float32"


NOTHING = {
    "operator": ({"name": "liner_scan"}, "^check: `liner_scan` is no operator"),
    "check": ({"checks": ("vlaue",)}, r"^check: unknown check 'vlaue'; did you mean value\? want"),
    "profile": ({"profile": "slow"}, r"^check: unknown profile 'slow'; wanted one of quick"),
    "type": ({"dtypes": "int8"}, r"^check: unknown type 'int8'"),
    "keyword": ({"dtype": "float32"}, r"^check: unknown keyword `dtype`; did you mean dtypes\?"),
    "declined": ({"only": lambda case: None}, r"(?s)^check: nothing was judged\nskip .*declined"),
    "no gradient": ({"checks": ("gradient",)}, r"(?s)^check: nothing was .*needs linear_scan_vjp"),
}


@pytest.mark.parametrize("what", NOTHING)
def test_check_raises_value_error_where_nothing_can_be_judged(what):
    settings, sentence = NOTHING[what]
    given = {"name": "linear_scan", "profile": "quick", "checks": ("value",)} | settings
    with pytest.raises(ValueError, match=sentence):
        check(given.pop("name"), scan, **given)
