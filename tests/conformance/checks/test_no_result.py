"""A function that returns no array passes no check, also none that looks at memory only."""

import numpy as np
import pytest
from judging import judged, scan

WITHOUT = {
    "nothing": (lambda a, b: None, "is a NoneType, want an array"),
    "a text": (lambda a, b: "x", "is a str, want an array"),
    "objects": (lambda a, b: np.array([None]), "is an array of object, want an array"),
    "a pair": (lambda a, b: (scan(a, b), scan(a, b)), "is a tuple, want an array"),
}


@pytest.mark.parametrize(("function", "words"), WITHOUT.values(), ids=WITHOUT)
def test_no_check_passes_for_a_function_that_returns_no_array(function, words):
    results = judged("linear_scan", function, profile="default", types=("float32",))
    came = {r.check: (r.verdict, words in r.message) for r in results if r.verdict != "skipped"}
    assert {"value", "nan", "batch", "repeat", "strides", "readonly"} < {*came}
    assert {"unchanged", "alias", "shapes", "empty"} < {*came}
    assert {*came.values()} == {("wrong", True)}


@pytest.mark.long
def test_a_gradient_that_is_no_array_is_wrong_in_its_own_check_only():
    results = judged("linear_scan", scan, profile="default", types=("float32",),
                     vjp=lambda dx, a, b: (None, None))  # fmt: skip
    wrong = {r.check: r.message for r in results if r.verdict not in ("pass", "skipped")}
    assert wrong == {"gradient": "`da` is a NoneType, want an array"}
