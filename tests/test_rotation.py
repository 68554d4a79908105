import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import rotation

from refssm.conformance.planted import planted_bugs

FILE = Path(rotation.__file__)
BUGS = planted_bugs()


class Item:
    """What `mark` needs of a pytest item."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, {*marks}

    def get_closest_marker(self, name):
        return name if name in self.marks else None

    def add_marker(self, name):
        self.marks.add(name)


def marked(*items):
    rotation.mark(items)
    return items


def printed(number, cwd, file=FILE):
    environment = {**os.environ, "REFSSM_ROTATION": number}
    command = [sys.executable, str(file)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8"
    )


def test_a_fact_is_short_a_long_test_is_not_and_a_mark_in_the_file_is_kept():
    fact, long, outside, chosen = marked(
        Item("a.py::fact"),
        Item("a.py::long", "long"),
        Item("a.py::outside", "outside"),
        Item("a.py::chosen[3]", "long", "short"),
    )
    assert [("short" in item.marks) for item in (fact, long, outside, chosen)] == [
        True,
        False,
        False,
        True,
    ]


def test_of_a_list_the_short_run_takes_a_twelfth_and_the_turn_a_part_in_36_of_the_rest():
    items = marked(*(Item(f"a.py::listed[{i}]") for i in range(12000)))
    short = [item for item in items if "short" in item.marks]
    rest = [item for item in items if "short" not in item.marks]
    turn = [item for item in rest if "turn" in item.marks]
    assert 11 < len(items) / len(short) < 13
    assert 34 < len(rest) / len(turn) < 38


@pytest.mark.parametrize("turns", [rotation.TURNS, rotation.TWELFTHS, rotation.OUTSIDE_TURNS])
def test_all_numbers_together_take_every_item_equally_often(monkeypatch, turns):
    seen = Counter()
    for number in range(rotation.TURNS):
        monkeypatch.setattr(rotation, "ROTATION", number)
        seen.update(i for i in range(300) if rotation.of_turn(f"a.py::t[{i}]", turns))
    assert seen == dict.fromkeys(range(300), rotation.TURNS // turns)


def test_the_group_that_xdist_adds_does_not_change_the_turn():
    alone, grouped = marked(Item("a.py::t[5]"), Item("a.py::t[5]@scan"))
    assert alone.marks == grouped.marks


def test_twelve_rotations_have_each_distinct_planted_bug_once(monkeypatch):
    what = {str(bug): bug.what for bug in BUGS}
    chosen = []
    for number in range(rotation.TURNS):
        monkeypatch.setattr(rotation, "ROTATION", number)
        chosen.append(rotation.one_of_each_kind(BUGS))
    monkeypatch.setattr(rotation, "of_turn", lambda *_: True)
    distinct = len(rotation.one_of_each_kind(BUGS))
    for first in range(rotation.TURNS - rotation.TWELFTHS + 1):
        twelve = chosen[first : first + rotation.TWELFTHS]
        assert sum(map(len, twelve)) == distinct
        assert {what[name] for name in set().union(*twelve)} == {*what.values()}
    assert {abs(12 * len(a) / distinct - 1) < 0.25 for a in chosen} == {True}
    assert len(set().union(*chosen)) > 1.4 * distinct  # other operators in other rotations


def test_a_kind_is_a_family_and_what_is_wrong(monkeypatch):
    def bug(op, what):
        return SimpleNamespace(op=op, what=what)

    bugs = [bug("linear_scan", "sign"), bug("dense_scan", "sign"), bug("cauchy_kernel", "sign")]
    monkeypatch.setattr(rotation, "of_turn", lambda *_: True)
    assert len(rotation.one_of_each_kind(bugs)) == 2


def test_the_number_is_what_is_asked_for_and_a_wrong_one_is_refused(tmp_path):
    assert printed("4", tmp_path).stdout == "4\n"
    refused = printed("36", tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == "REFSSM_ROTATION: wanted a number from 0 to 35, got '36'\n"


def test_outside_git_the_number_is_0(tmp_path):
    (tmp_path / "tests").mkdir()
    copy = shutil.copy(FILE, tmp_path / "tests")
    assert printed("", tmp_path, Path(copy)).stdout == "0\n"


def test_the_default_is_the_hash_of_the_commit_modulo_36():
    root = FILE.parents[1]
    head = subprocess.run(
        ["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, encoding="ascii"
    )
    if head.returncode:
        pytest.skip("this is no clone")
    assert rotation.rotation("") == int(head.stdout, 16) % 36


NAMES_IN_ORDER = """
from honest import implementations
from refssm.conformance.planted import planted_bugs
print(*planted_bugs(), *implementations())
"""


def test_planted_bugs_and_honest_programs_stand_in_the_same_order_in_each_process():
    """Processes of pytest-xdist refuse to share items that they list in another order."""
    told = []
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-c", NAMES_IN_ORDER]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            command,
            env=environment,
            cwd=FILE.parent,
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        told.append(done.stdout.split())
    assert len(told[0]) > 13000
    assert told[0] == told[1] == told[2]
