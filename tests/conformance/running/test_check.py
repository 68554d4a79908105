"""`refssm.testing.check`: what it raises, and what it judges."""

import os
import sys
import types
from inspect import signature

import numpy as np
import pytest

from refssm.conformance.running.session import USUAL
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm.testing import Budget, check, implements

scan, scan_from = LINEAR_SCAN.reference, LINEAR_SCAN_FROM.reference
vjp = LINEAR_SCAN.bare_vjp


def late(a, b):
    """Wrong by one in step 64, which only longer inputs have."""
    x = scan(a, b)
    x[..., 64:65, :] = b[..., 64:65, :]
    return x


def failure(function, *checks, **settings):
    """The text of the AssertionError."""
    with pytest.raises(AssertionError) as caught:
        check("linear_scan", function, **{"profile": "quick", **settings}, checks=checks)
    return str(caught.value)


def refusal(function, *checks, **settings):
    """The text of the ValueError."""
    with pytest.raises(ValueError, match=r"^check: ") as caught:
        check("linear_scan", function, profile="quick", checks=checks, **settings)
    return str(caught.value)


def test_a_right_function_passes_in_silence_and_leaves_nothing(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert check("linear_scan", scan, profile="quick") is None
    assert capfd.readouterr() == ("", "")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.long
def test_a_wrong_function_is_an_assertion_error_with_the_lines_of_the_report():
    text = failure(late, "value", "alias", profile="default")
    first, second, *_ = text.splitlines()
    assert first == "F linear_scan/value[float32]: x[0,64,0]=1, want 65 (4 checks fail)"
    assert second.startswith("FAIL linear_scan/value[float32]   grade F   ratio ")
    assert "\n  worst x[0, 64, 0]: got 1, want 65 ± " in text
    assert "\n  equally wrong in float64: the formula is wrong, this is not rounding\n" in text
    assert "\n  smallest: l=65 n=1; a=1 throughout, b=1 throughout   (ratio " in text
    assert text.count('\n  again: check("linear_scan", late, checks=("value",))\n') == 3
    assert text.endswith('\n  again: check("linear_scan", late, checks=("value",))')
    heads = [line.split("   ")[0] for line in text.splitlines() if not line.startswith("  ")]
    failed = ("float32", "float64", "complex64", "complex128")
    assert heads == [first, *(f"FAIL linear_scan/value[{t}]" for t in failed)]


def test_the_line_again_has_the_arguments_that_were_given():
    def turned(a, b):
        return late(a.swapaxes(1, 2), b.swapaxes(1, 2)).swapaxes(1, 2)

    layout = {"layout": "b n l, b n l -> b n l", "accuracy": Budget(C=64)}
    text = failure(turned, "value", seed=3, dtypes="float32", **layout)
    line = next(line for line in text.splitlines() if line.startswith("  again: "))
    calls, words = [], line.removeprefix("  again: ")
    assert words.startswith(
        'check("linear_scan", turned, checks=("value",), profile="quick", seed=3'
    )
    names = {"check": lambda *given, **how: calls.append((given, how)), "Budget": Budget}
    eval(words, names | {"turned": turned})
    assert calls == [
        (
            ("linear_scan", turned),
            {"checks": ("value",), "profile": "quick", "seed": 3, "dtypes": "float32", **layout},
        )
    ]


def test_what_the_line_again_leaves_out_is_the_default():
    defaults = {name: p.default for name, p in signature(check).parameters.items()}
    assert {name: defaults[name] for name in USUAL} == USUAL


@pytest.mark.parametrize("check_", ["nan", "prefix", "repeat", "alias"])
def test_laws_conduct_and_errors_have_the_line_again(check_):
    def raises(a, b):
        raise RuntimeError("boom")

    text = failure(raises, check_)
    assert text.splitlines()[0].startswith(f"error linear_scan/{check_}[float32]: ")
    assert "raised RuntimeError: boom" in text.splitlines()[0]
    assert f'\n  again: check("linear_scan", raises, checks=("{check_}",), profile="quick")' in text


def test_calls_that_raise_the_same_at_the_same_line_are_reported_once():
    def raises(a, b):
        raise RuntimeError("boom")

    text = failure(raises, "value", "nan", "alias")
    assert text.splitlines()[0].endswith(" (3 checks fail)")
    assert text.count("FAIL ") == text.count("again: ") == 1
    assert "\n  the same in 2 more: nan[float32], alias[float32]\n" in text


def test_a_function_that_raises_is_an_assertion_error_too():
    def raises(a, b):
        raise RuntimeError("boom")

    assert "raised RuntimeError: boom (test_check.py:" in failure(raises, "value")


def test_an_inaccurate_function_fails_unless_it_says_what_it_computes_in():
    def rough(a, b):
        m, e = np.frexp(scan(a, b))
        return np.ldexp(np.rint(np.ldexp(m, 11)), e - 11).astype(m.dtype)

    assert "FAIL linear_scan/value[float32]   grade C" in failure(rough, "value")
    accuracy = Budget(computes="tf32")
    check("linear_scan", rough, accuracy=accuracy, profile="quick", checks=("value",))


USAGE = {
    "profile": ({"profile": "slow"}, "check: unknown profile 'slow'; wanted one of quick, default"),
    "check": (
        {"checks": ("vlaue",)},
        "check: unknown check 'vlaue'; did you mean value? wanted one of value, state",
    ),
    "operator": (
        {"name": "liner_scan"},
        "check: `liner_scan` is no operator; did you mean linear_scan? `refssm list` prints",
    ),
    "no operator": ({"name": ""}, "wanted the name of an operator"),
    "option": ({"framwork": "jax"}, "check: unknown keyword `framwork`; did you mean framework?"),
    "framework": ({"framework": "mxnet"}, "check: unknown framework 'mxnet'"),
    "type": ({"dtypes": ("float8",)}, "check: unknown type 'float8'"),
    "layout": ({"layout": "b l -> b l"}, "linear_scan: layout 'b l -> b l' must have"),
    "autodiff": ({"vjp": True}, "numpy has no autodiff"),
}


@pytest.mark.parametrize("what", USAGE)
def test_what_cannot_be_is_a_value_error_in_one_sentence(what):
    settings, told = USAGE[what]
    settings = {"name": "linear_scan", "profile": "quick"} | settings
    with pytest.raises(ValueError, match=r"\S") as caught:
        check(settings.pop("name"), scan, **settings)
    assert told in str(caught.value)
    assert str(caught.value).startswith("check: ")
    assert len(str(caught.value).splitlines()) == 1


def declines(a, b):
    raise NotImplementedError("not today")


NOTHING = {
    "declined": (declines, "value", {}, "declined all cases"),
    "no gradient": (scan, "gradient", {}, "needs linear_scan_vjp"),
    "no other form": (scan, "split", {}, "needs linear_scan_from"),
    "no device": (scan, "value", {"device": "cuda"}, "numpy has no device 'cuda'"),
    "no library": (scan, "value", {"framework": "jax", "device": "cpu:99"}, "jax"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", NOTHING)
def test_where_nothing_is_judged_it_is_no_pass(what):
    function, name, settings, told = NOTHING[what]
    text = refusal(function, name, **settings)
    assert text.startswith(f"check: nothing was judged\nskip linear_scan/{name}[float32]   ")
    assert told in text


def test_it_runs_here_where_a_debugger_stops():
    seen = set()

    def watched(a, b):
        seen.add(os.getpid())
        return scan(a, b)

    check("linear_scan", watched, profile="quick", checks=("alias",))
    assert seen == {os.getpid()}


def test_a_gradient_by_hand_is_judged():
    check("linear_scan", scan, vjp=vjp, profile="quick", checks=("gradient",))
    text = failure(scan, "gradient", vjp=lambda dx, a, b: vjp(-dx, a, b))
    assert "FAIL linear_scan/gradient[float32]" in text


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_vjp_true_asks_for_the_autodiff_of_the_framework(framework):
    module = pytest.importorskip(framework)
    xp = module.numpy if framework == "jax" else module

    def looped(a, b):
        states = [b[..., 0, :]]
        for k in range(1, b.shape[-2]):
            states.append(a[..., k, :] * states[-1] + b[..., k, :])
        return xp.stack(states, -2) + 0 * a

    settings = {"framework": framework, "ftz": True, "vjp": True, "only": short}
    check("linear_scan", looped, **settings, checks=("gradient",), profile="quick")
    text = failure(lambda a, b: looped(a * 2, b), "gradient", **settings)
    assert "FAIL linear_scan/gradient[float32]" in text


def short(x):
    """The first steps of the first channel."""
    return {name: a[..., :4, :1] for name, a in x.items()}


@pytest.mark.long
def test_the_seed_decides_the_cases():
    texts = [failure(late, "value", seed=seed) for seed in (0, 0, 5)]
    told = [text[text.index("worst") :] for text in texts]  # the part after the duration
    assert told[0] == told[1] != told[2]


def test_what_implements_says_counts_and_what_is_said_here_is_added():
    def turned(a, b):
        return np.swapaxes(scan(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)

    assert "FAIL linear_scan/value[float32]" in failure(turned, "value")
    declared = implements("linear_scan", layout="b n l, b n l -> b n l")(turned)
    check("linear_scan", declared, profile="quick", checks=("value",))
    check("linear_scan", declared, ftz=True, profile="quick", checks=("value",))
    told = failure(declared, "value", layout="b l n, b n l -> b n l")
    assert "in its layout the arguments have the shapes `a` (2, 5, 3), `b` (2, 3, 5)" in told


def module_of(monkeypatch, **members):
    """A module with these members; its functions belong to it."""
    module = types.ModuleType("my_ops")
    monkeypatch.setitem(sys.modules, "my_ops", module)
    for name, member in members.items():
        if isinstance(member, types.FunctionType):
            member.__module__ = "my_ops"
        setattr(module, name, member)
    return module


def split_judged(monkeypatch, resumed, **others):
    """The result of `split` for a right scan in a module with a `_from` form."""

    def mine(a, b):
        return scan(a, b)

    module = module_of(monkeypatch, **others, resumed=resumed, mine=mine)
    check("linear_scan", module.mine, profile="quick", checks=("split",))


@pytest.mark.long
def test_split_is_judged_with_the_form_of_the_module_that_starts_from_a_state(monkeypatch):
    @implements("linear_scan_from")
    def right(a, b, x0):
        return scan_from(a, b, x0)

    @implements("linear_scan_from")
    def forgetful(a, b, x0):
        return scan_from(a, b, 0 * x0)

    split_judged(monkeypatch, right)
    with pytest.raises(AssertionError, match=r"FAIL linear_scan/split\[float32\]"):
        split_judged(monkeypatch, forgetful)
    with pytest.raises(ValueError, match="needs linear_scan_from"):
        split_judged(monkeypatch, lambda a, b, x0: scan_from(a, b, x0))  # has no declaration


def test_what_else_stands_in_the_module_does_not_disturb(monkeypatch):
    class Lazy:
        def __getattr__(self, name):
            raise KeyError(name)

    @implements("linear_scan_from")
    def right(a, b, x0):
        return scan_from(a, b, x0)

    split_judged(monkeypatch, right, lazy=Lazy())
