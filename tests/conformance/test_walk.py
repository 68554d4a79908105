"""The path of one array, as docs/architecture.md describes it, compared with the actual calls."""

import re
import sys
from pathlib import Path

from judging import SCAN, plugin

from refssm.command import code
from refssm.conformance.running.first_calls import certified

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| \d+ \| `([a-z_/]+\.py): ([\w.]+)` \|", PAGE, re.MULTILINE)
ONE_CHECK = ("--check", "value", "--dtype", "float32", "--cases", "1", "--in-process")


def calls_of(*arguments):
    """The functions of refssm that a command calls, in order: file and qualified name."""
    root, seen = str(ROOT / "refssm"), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            path = frame.f_code.co_filename.removeprefix(f"{root}/").removeprefix("conformance/")
            seen.append((path, frame.f_code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        code([*arguments])
    finally:
        sys.setprofile(before)
    return seen


def missing(steps, seen):
    """The first step that is missing after the step before it, or None."""
    calls = iter(seen)
    return next((step for step in steps if step not in calls), None)


def test_the_walk_has_at_most_15_steps_numbered_in_order():
    numbers = re.findall(r"^\| (\d+) \| `[a-z_/]+\.py: ", PAGE, re.MULTILINE)
    assert numbers == [str(i + 1) for i in range(len(STEPS))]
    assert 10 <= len(STEPS) <= 15


def test_each_step_of_the_walk_is_a_call_that_is_made_in_this_order(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_ops", raising=False)
    certified.cache_clear()  # another test may already have certified the reference
    seen = calls_of("verify", plugin(tmp_path, SCAN), *ONE_CHECK)
    assert "pass" in capfd.readouterr().out
    assert missing(STEPS, seen) is None


def test_a_step_out_of_order_or_a_function_that_is_not_called_is_seen():
    seen = [("a.py", "first"), ("b.py", "second"), ("a.py", "first")]
    assert missing([("a.py", "first"), ("b.py", "second")], seen) is None
    assert missing([("b.py", "second"), ("b.py", "second")], seen) == ("b.py", "second")
    assert missing([("a.py", "first"), ("c.py", "third")], seen) == ("c.py", "third")
