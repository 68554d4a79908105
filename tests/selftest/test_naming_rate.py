"""The naming rate keeps each finished operator, and an interrupted run goes on; a sample of it."""

import warnings

import numpy as np
import pytest

from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.judging.expected import remembering
from selftest import naming_rate
from selftest.naming_rate import Named

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


SAMPLED = [
    op
    for op in OPERATORS
    if op.name
    in (
        "linear_step",
        "vandermonde_kernel",
        "cauchy_kernel",
        "mamba_scan_stateful",
        "ssd_chunked_packed",
        "short_convolution",
        "diagonal_ssm_varying_stateful",
        "dss_softmax_kernel",
    )
]


# of the 2 to 3 % that have no name; with other draws another bug is among them
UNNAMED = [("dss_softmax_kernel", "float16")]


@pytest.mark.long
@pytest.mark.parametrize("op", SAMPLED, ids=str)
def test_most_planted_bugs_are_named_in_another_program(op):
    """Two planted bugs of some operators; `selftest/naming_rate.py` covers all."""
    bugs = [*naming_rate.replanted(op)]
    with remembering(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        told = [naming_rate.named(d) for d in bugs[:: len(bugs) // 2][:2]]
    missed = [(f"{op}", n.bug) for n in told if n.caught and not n.first]
    assert missed in ([], UNNAMED), told


def test_what_a_bug_writes_to_is_no_copy():
    bugs = naming_rate.replanted(operator_named("shift_kernel"))
    (bug,) = (d for d in bugs if d.name == "overwrites_input")
    assert naming_rate.named(bug).first
