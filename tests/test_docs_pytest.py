"""The page on pytest shows what pytest prints."""

import re
import shlex
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/pytest.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs/examples/scans_in_pytest.py").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n\$ pytest ([^\n]*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PLUGIN = ("-p", "no:cacheprovider", "--disable-plugin-autoload",
          "-p", "refssm.conformance.pytest_plugin",
          "-W", "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip


def timeless(text):
    """The lines without what depends on the machine's speed."""
    text = re.sub(r" +\d+ fail alike$| +\d+(\.\d+)? ?s\b", "", text, flags=re.MULTILINE)
    return [re.sub(r"[=_]{3,}", "===", line) for line in text.splitlines() if line.strip()]


def test_the_page_shows_the_whole_example():
    assert CODE[0] in EXAMPLE
    assert len(SHOWN) == 3


@pytest.mark.long
@pytest.mark.parametrize(("command", "text"), SHOWN, ids=["marks", "skips", "check"])
def test_a_transcript_is_what_pytest_prints(command, text, pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("BUILD_NUMBER", raising=False)
    pytester.makepyfile(scans_in_pytest=EXAMPLE, test_my_scans=CODE[1])
    printed = timeless(pytester.runpytest(*PLUGIN, *shlex.split(command)).stdout.str())
    shown = timeless(text)
    assert len(shown) >= 2
    assert [line for line in shown if line not in printed] == []
