"""The path of one array, as docs/architecture.md describes it, compared with the actual calls.

The way of the array is the path in the tree of calls from each step of the table to the next one:
up from a step, through the functions that called it, to the function that leads to both, and down
to the next step. Its changes of file are counted: how often a function on the way is in another
file than the function before it. So a helper that is called and returns between two steps does not
count, and each file that a reader passes on the way to a step, or on the way back, does.
"""

import re
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from judging import SCAN, plugin

from refssm.command import code
from refssm.conformance.judging.certificate import certified

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| \d+ \| `([a-z_/]+\.py): ([\w.]+)` \|", PAGE, re.MULTILINE)
AROUND = ("running/own_faults.py",)
CHANGES = 30  # of file, from the first step to the last
ONE_CHECK = ("--check", "value", "--dtype", "float32", "--cases", "1", "--in-process")


class Call(NamedTuple):
    """A call of a function of refssm; `caller` is the index of the call that made it, or None."""

    file: str
    function: str
    caller: int | None


def calls_of(*arguments):
    """The calls that a command makes, in order."""
    root, seen, running = str(ROOT / "refssm"), [], []

    def note(frame, event, _):
        if not frame.f_code.co_filename.startswith(root):
            return
        if event == "call":
            path = frame.f_code.co_filename.removeprefix(f"{root}/").removeprefix("conformance/")
            caller = running[-1] if running else None
            running.append(len(seen))
            seen.append(Call(path, frame.f_code.co_qualname, caller))
        elif event == "return" and running:
            running.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        code([*arguments])
    finally:
        sys.setprofile(before)
    return seen


def found(steps, seen):
    """For each step the index of its call, the first one after that of the step before it.

    It ends at a step that is missing.
    """
    places, start = [], 0
    for step in steps:
        place = next((i for i in range(start, len(seen)) if seen[i][:2] == step), None)
        if place is None:
            break
        places.append(place)
        start = place + 1
    return places


def missing(steps, seen):
    """The first step that is missing after the step before it, or None."""
    places = found(steps, seen)
    return steps[len(places)] if len(places) < len(steps) else None


def way(places, seen):
    """The files on the way from each of these calls to the next one, equal neighbours once.

    What stands around other calls and only passes them on is no place to read.
    """
    files = [seen[places[0]].file]
    for start, end in pairwise(places):
        up, down = callers(start, seen), callers(end, seen)
        met = next(i for i in up if i in down)
        path = [*up[: up.index(met) + 1], *reversed(down[: down.index(met)])]
        files += [seen[i].file for i in path if seen[i].file not in AROUND]
    return [file for file, _ in groupby(files)]


def callers(place, seen):
    """A call, its caller, the caller of that, and so on."""
    chain = []
    while place is not None:
        chain.append(place)
        place = seen[place].caller
    return chain


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
    assert len(way(found(STEPS, seen), seen)) - 1 <= CHANGES


def test_a_step_out_of_order_or_a_function_that_is_not_called_is_seen():
    seen = [Call(*call, None) for call in (("a", "first"), ("b", "second"), ("a", "first"))]
    assert missing([("a", "first"), ("b", "second")], seen) is None
    assert missing([("b", "second"), ("b", "second")], seen) == ("b", "second")
    assert missing([("a", "first"), ("c", "third")], seen) == ("c", "third")


def test_a_longer_way_is_seen():
    short = [Call("a", "first", None), Call("b", "second", 0), Call("c", "third", 0)]
    steps = [call[:2] for call in short]
    assert way(found(steps, short), short) == ["a", "b", "a", "c"]
    # a file that only passes the call on, and one that is called and returns on the way
    longer = [short[0], Call("x", "passes", 0), Call("b", "second", 1), Call("y", "helps", 2)]
    longer += [Call("c", "third", 0)]
    assert way(found(steps, longer), longer) == ["a", "x", "b", "x", "a", "c"]
