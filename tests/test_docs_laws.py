"""The page on laws of one's own shows the example, and what pytest prints."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/laws.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs/examples/laws_of_scans.py").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = re.findall(r"^```\n\$ pytest [^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PLUGINS = ("-p", "no:cacheprovider", "--disable-plugin-autoload", "-p", "hypothesispytest")


def test_the_laws_of_the_page_are_those_of_the_example_and_hold(pytester):
    laws = [block for block in CODE if block.lstrip().startswith(("@given", "def my_scan"))]
    assert len(laws) == 4
    assert [block for block in laws if block not in EXAMPLE] == []
    pytester.makepyfile(EXAMPLE)
    pytester.runpytest(*PLUGINS).assert_outcomes(passed=3)


WRONG = {
    "u * ~even": "np.abs(u) * ~even",
    "changed(x0=x)": "changed(x0=0 * x)",
    "shift *= 2": "shift *= 2 if shift < 32 else 4",
}


@pytest.mark.parametrize("right", WRONG)
def test_a_planted_mistake_breaks_its_law(right, pytester):
    assert EXAMPLE.count(right) == 1
    pytester.makepyfile(EXAMPLE.replace(right, WRONG[right]))
    pytester.runpytest(*PLUGINS).assert_outcomes(passed=2, failed=1)


def test_the_page_shows_what_pytest_prints_of_a_scan_that_loses_its_state(pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    (shown,) = SHOWN
    (wrong,) = (block for block in CODE if "assert_right" in block)
    pytester.makepyfile(test_chunked=f"{wrong}")
    printed = pytester.runpytest(*PLUGINS, "--tb=short").stdout.str()
    lines = [line for line in shown.splitlines() if line.strip("=_ ") and " in " not in line]
    assert len(lines) > 3
    assert [line for line in lines if line not in printed] == []
