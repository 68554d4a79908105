"""The naming rate keeps each finished operator, and an interrupted run goes on."""

import pytest

from refssm.conformance.selftest import naming_rate
from refssm.conformance.selftest.naming_rate import Named

ASKED = []


def found(name, every, lost):
    """Stands for an hour of work."""
    ASKED.append((name, every, lost))
    if name == "interrupted":
        raise KeyboardInterrupt
    bug = Named(f"{name}_bug", "value[float32]", "what", True, True, "what", True)
    return [bug], [bug._replace(caught=False)]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    ASKED.clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(naming_rate, "of_operator", found)


def test_an_interrupted_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        naming_rate.results(["a", "b", "interrupted"], 1, 6, 1)
    (kept,) = (tmp_path / ".refssm").glob("naming-*.jsonl")
    with kept.open("a", encoding="utf-8") as lines:
        lines.write('[["c", 1, 6], [[["c_b\n')  # a line that was cut off
    ASKED.clear()
    came = naming_rate.results(["a", "b", "c"], 1, 6, 1)
    assert ASKED == [("c", 1, 6)]
    assert came["a"] == found("a", 1, 6)
    assert [*came] == ["a", "b", "c"]


def test_another_share_of_the_bugs_or_other_losses_are_found_anew():
    naming_rate.results(["a"], 1, 6, 1)
    naming_rate.results(["a"], 2, 6, 1)
    naming_rate.results(["a"], 1, 8, 1)
    assert ASKED == [("a", 1, 6), ("a", 2, 6), ("a", 1, 8)]
