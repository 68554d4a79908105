"""NaN and infinity in the inputs: which outputs the judge accepts."""

import numpy as np
from judging import judged, scan

from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.special_values import poisons
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM


def doubting(a, b):
    """NaN instead of every infinity."""
    x = scan(a, b)
    return np.where(np.isinf(x), np.nan, x).astype(x.dtype)


def test_an_infinity_handed_in_may_not_come_out_as_nan():
    (line,) = judged("linear_scan", doubting, "nan", types=("float32",))
    assert line.verdict == "wrong"
    assert "= infinity: " in line.message


def test_the_first_decay_from_rest_is_not_poisoned_and_one_from_a_state_is():
    for op, poisoned in ((LINEAR_SCAN, False), (LINEAR_SCAN_FROM, True)):
        told = [what for _, what, _ in poisons(op, ordinary_case(op, "float32", sizes=(1, 3)))]
        assert any(w.startswith("a[") and w.endswith("= NaN") for w in told) == poisoned
