"""A failing case is made smaller by lower choices and sizes; it stays a failure of its kind."""

import time

import numpy as np
from judging import judged, scan, shrunk

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.drawing import cases
from refssm.conformance.cases.sampling import Sample
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.diagnosis.shrinking import (
    LISTED,
    PLAIN_TRIES,
    SHRINK_TRIES,
    Shrinking,
    first_entries,
)
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.running.patience import OuterStop
from refssm.norms import GATED_RMS_NORM
from refssm.scan import LINEAR_SCAN
from refssm.selective_scan import SELECTIVE_SCAN

SCANS = Drawing(cases(LINEAR_SCAN, "float32"))


def smallest(judge_case, count=50, seed=1, **how):
    """What becomes of the first failure that a sweep finds."""
    return shrunk(sweep(SCANS, judge_case, count=count, seed_=seed), judge_case, **how)


def test_a_failure_shrinks_to_the_smallest_failing_case():
    def too_long(case):
        return wrong("too long") if case.sizes["l"] > 60 and case.sizes["n"] > 1 else Verdict("A")

    case = smallest(too_long).case
    assert case.sizes == {"l": 61, "n": 2}
    assert {knob.map for knob in case.knobs.values()} == {"one"}
    assert {*case.batch.values()} == {1}


def test_what_fails_in_every_case_shrinks_to_one_step():
    for seed in range(3):
        case = smallest(lambda case: wrong("always"), seed=seed).case
        assert {*case.sizes.values(), *case.batch.values()} == {1}


def test_what_fails_wherever_it_is_called_shrinks_to_one_step_in_the_report():
    (result,) = judged("linear_scan", lambda a, b: 2 * scan(a, b), "value", shrink=True)
    assert result.smallest.startswith("l=1 n=1; ")


def test_no_single_lower_choice_of_the_smallest_case_fails():
    def particular(case):
        decay, inputs = case.knobs.values()
        of_kind = decay.map in ("unit", "slow", "normal") or inputs.texture in ("gaps", "late")
        fails = of_kind and case.sizes["l"] >= 32 and case.seed % 2 == 0
        return wrong("particular") if fails else Verdict("A")

    for seed in range(4):
        found = smallest(particular, seed=seed)
        choices = found.sample.choices
        assert any(choices)
        assert max(choices) < LISTED
        for place, chosen in enumerate(choices):
            for lower in range(chosen):
                other = found.sample.changed([*choices[:place], lower, *choices[place + 1 :]])
                assert particular(other.case).ok


def test_a_failure_shrinks_to_failures_of_the_same_kind_only():
    def two_bugs(case):
        error = Verdict("F", message="raised X", error=True)
        return (
            error if case.sizes["l"] < 3 else wrong("y") if case.sizes["l"] > 60 else Verdict("A")
        )

    for seed in range(5):
        found = smallest(two_bugs, seed=seed)
        assert (found.verdict.verdict == "error") == (found.case.sizes["l"] < 3)


def test_what_fails_at_the_end_of_a_domain_shrinks_to_one_step_there():
    scans = Drawing(cases(SELECTIVE_SCAN, "float32"))

    def underflows(case):  # a product of decays, which a long sequence or one strong decay makes 0
        _, dt, A, *_ = case.arrays
        return wrong("0") if (dt.sum(-1).max() * A.min()).real < -104 else Verdict("A")

    for seed in range(3):
        swept = sweep(scans, underflows, count=20, seed_=seed)
        found = shrunk(swept, underflows).case
        assert {*found.sizes.values(), *found.batch.values()} == {1}
        assert underflows(found).grade == "F"


def test_a_case_of_another_type_that_fails_in_the_same_way_is_taken_at_once():
    def long(case):
        return wrong("long") if case.sizes["l"] > 30 else Verdict("A")

    swept = sweep(SCANS, long, count=10, seed_=1)
    known = smallest(long).case
    failure = swept.failures[0]
    assert failure.sample is not None
    shrinking = Shrinking(long, failure.sample, failure.smallest)
    shrinking.shrink([known])
    assert (shrinking.case, shrinking.tries) == (known, 1)


def test_shrinking_ends_in_time():
    calls = []

    def slow(case):
        calls.append(case)
        time.sleep(0.05)
        return wrong("long") if case.sizes["l"] > 60 else Verdict("A")

    swept = sweep(SCANS, slow, count=10, seed_=1)
    before, stop = len(calls), OuterStop(0.2)
    shrunk(swept, slow, over=stop)
    assert 0 < len(calls) - before < 8
    assert stop.acted


def test_a_failure_that_ended_the_process_stays_as_it_is():
    def crash(case):
        dead = Verdict("F", message="killed the process by SIGSEGV", error=True, died=True)
        return dead if case.sizes["l"] > 5 else Verdict("A")

    assert smallest(crash).tries == 0


def test_shrinking_tries_at_most_so_many_cases():
    ticks = []
    found = smallest(
        lambda case: wrong("large") if case.seed > 99 else Verdict("A"), tick=ticks.append
    )
    assert 0 < found.tries <= SHRINK_TRIES + PLAIN_TRIES
    assert ticks == [*range(1, found.tries + 1)]


def test_shrinking_tries_as_many_cases_on_a_slow_machine_as_on_a_fast_one(monkeypatch):
    for name, tries in (("SHRINK_TRIES", 10), ("PLAIN_TRIES", 5)):
        monkeypatch.setattr(f"refssm.conformance.diagnosis.shrinking.{name}", tries)
    tried, ends, ticks = [], [], []
    for pause in (0, 0.02):
        failed, after = [], []

        def judge_case(case, pause=pause, failed=failed, after=after):
            time.sleep(pause)
            if failed:
                after.append(str(case))
            if case.sizes["l"] < 40:
                return Verdict("A")
            failed.append(case)
            return wrong("long")

        ends.append(str(smallest(judge_case, count=20, tick=ticks.append).case))
        tried.append(after)
    assert max(ticks) == 10 + 5
    assert tried[0] == tried[1]
    assert ends[0] == ends[1]


def test_declined_cases_are_counted_while_searching_only():
    declined, smaller = [], []

    def declining(case):
        if case.sizes["l"] <= 64:
            declined.append(any(smaller))
            raise Declined
        return wrong("long")

    swept = sweep(SCANS, declining, count=40, seed_=2)
    before = swept.declined
    assert shrunk(swept, declining, tick=smaller.append).case.sizes["l"] == 65
    assert True in declined
    assert swept.declined == before > 0


def test_a_case_that_no_sampler_drew_shrinks_by_its_sizes():
    def long(case):
        return wrong("long") if case.sizes["l"] > 6 else Verdict("A")

    sample = Sample(ordinary_case(LINEAR_SCAN, "float32", sizes=(33, 40)))
    shrinking = Shrinking(long, sample, wrong("long"))
    shrinking.shrink()
    assert shrinking.case.sizes == {"l": 7, "n": 1}


def test_simplified_arrays_keep_only_the_first_entries_that_fail():
    case = ordinary_case(LINEAR_SCAN, "float32", sizes=(5, 4))

    def sums(arrays):
        return np.sum(arrays[1][0]) >= 2

    arrays = [np.ones_like(a) for a in case.arrays]
    assert [a.shape for a in first_entries(case, arrays, sums)] == [(1, 1, 2)] * 2
    assert [a.shape for a in first_entries(case, arrays, sums, fixed={"l"})] == [(1, 5, 1)] * 2
    declined = first_entries(case, arrays, sums, lambda attempt: None)
    assert all(map(np.array_equal, declined, arrays))


def test_a_size_that_a_keyword_divides_is_not_cut():
    case = ordinary_case(GATED_RMS_NORM, "float32", sizes=(6,))
    kept = first_entries(case, case.arrays, lambda arrays: True)
    assert {a.shape[-1] for a in kept} == {case.sizes["n"]}
    GATED_RMS_NORM.sizes(*kept, **case.statics)  # no ValueError
