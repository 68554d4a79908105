"""The programs of docs/serving.md pass the checks that the page names."""

import re
from pathlib import Path

import pytest
from judging import judged

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.checks.checks import NAMES
from refssm.testing import Declaration

PAGE = Path(__file__).parents[1].joinpath("docs", "serving.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def defined(code, name):
    namespace: dict = {}
    exec(code, namespace)
    return namespace[name]


@pytest.mark.parametrize("check", ["value", "split", "rollback"])
def test_a_scan_that_joins_blocks_passes(check):
    scan = defined(CODE[0], "linear_scan_from")
    (line,) = judged("linear_scan_from", scan, check, dtypes=("float32",))
    assert line.verdict == "pass"


def test_a_block_that_passes_on_its_state_without_the_decay_is_refused():
    wrong = CODE[0].replace("np.cumprod(a_w, axis=-2) * ", "")
    assert wrong != CODE[0]
    (line,) = judged("linear_scan_from", defined(wrong, "linear_scan_from"), "value")[:1]
    assert line.verdict == "wrong"


@pytest.mark.parametrize("check", ["value", "lengths"])
def test_the_padded_scan_passes(check):
    scan = defined(CODE[1], "padded_scan")
    assert isinstance(scan.__refssm__, Declaration)
    declared = {"lengths": "seq_lens", "padding": "left", "dtypes": ("float32",)}
    assert (scan.__refssm__.lengths, scan.__refssm__.padding) == ("seq_lens", "left")
    (line,) = judged("linear_scan", scan, check, **declared)
    assert line.verdict == "pass"


def test_a_padded_scan_without_its_mask_is_refused():
    wrong = CODE[1].replace("np.where(inside, b, 0)", "b")
    assert wrong != CODE[1]
    how = {"lengths": "seq_lens", "padding": "left", "dtypes": ("float32",)}
    (line,) = judged("linear_scan", defined(wrong, "padded_scan"), "lengths", **how)
    assert line.verdict == "wrong"


def test_a_gradient_that_does_not_cross_the_cut_is_refused():
    op = operator_named("linear_scan_from")

    def detached(dx, a, b, x0):
        *gradients, dx0 = op.bare_vjp(dx, a, b, x0)
        return *gradients, 0 * dx0

    scan = defined(CODE[0], "linear_scan_from")
    for back, verdict in ((op.bare_vjp, "pass"), (detached, "wrong")):
        how = {"vjp": back, "profile": "default", "dtypes": ("float32",)}
        (line,) = judged("linear_scan_from", scan, "joined", **how)
        assert line.verdict == verdict


def test_the_checks_of_the_table_exist():
    table = PAGE.partition("## Rejected")[0]
    named = re.findall(r"^\|[^|]*\| `(\w+)`", table, re.MULTILINE)
    assert named == ["split", "rollback", "joined", "lengths", "value", "state"]
    assert {*named} <= {*NAMES}
