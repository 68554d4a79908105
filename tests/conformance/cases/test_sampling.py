"""The judge's sampler: choices from lists, recorded, the same on every machine."""

import numpy as np
import pytest

from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.drawing import cases
from refssm.conformance.cases.sampling import Choices, at_random, evenly, made
from refssm.conformance.checks.checks import PROFILES, checks_of, types_of
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.piece import key_of
from refssm.scan import LINEAR_SCAN

SCANS = cases(LINEAR_SCAN, "float32")


RECORDED = [  # length, width, batch, the knobs of `a` and of `b`, seed
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (22, 31, 1, 0, 0, 0, 0, 0, 0, 0),
    (11, 50, 2, 10, 5, 0, 6, 5, 0, 3696954131),
    (10, 14, 1, 15, 4, 0, 3, 8, 0, 2579946810),
]


def drawn(count, seed, sampler=SCANS):
    return [s for piece in Drawing(sampler).pieces(count) for s in piece.samples(seed)]


def test_the_same_seed_gives_the_same_choices():
    assert [sample.choices for sample in drawn(4, 7)] == RECORDED
    assert [sample.choices for sample in drawn(4, 8)] != RECORDED


def test_a_case_is_made_again_from_its_choices():
    for sample in drawn(20, 1):
        again = sample.changed(sample.choices)
        assert (str(again.case), again.choices) == (str(sample.case), sample.choices)


def test_the_first_case_is_the_simplest():
    simplest, *others = drawn(20, 3)
    assert {*simplest.choices} == {0}
    assert simplest.case.sizes == {"l": 1, "n": 1}
    assert {f"{knob}" for knob in simplest.case.knobs.values()} == {"one/each/real"}
    assert all(any(sample.choices) for sample in others)


def test_the_second_case_is_as_simple_but_for_its_sizes():
    lengths = set()
    for seed in range(8):
        case = drawn(20, seed)[1].case
        lengths.add(case.sizes["l"])
        assert case.exact
        assert {f"{knob}" for knob in case.knobs.values()} == {"one/each/real"}
    assert len(lengths) > 4


def test_a_piece_does_not_depend_on_the_others():
    whole = [key_of(case) for case in Drawing(SCANS).cases(25, 4)]
    pieces = [[key_of(s.case) for s in p.samples(4)] for p in Drawing(SCANS).pieces(25)]
    assert [*map(len, pieces)] == [10, 10, 5]
    assert [key for piece in pieces for key in piece] == whole
    later = [key_of(s.case) for p in Drawing(SCANS).pieces(25, turn=1) for s in p.samples(4)]
    assert len({*whole, *later}) == 50


def test_each_entry_of_a_list_is_chosen_about_equally_often():
    for cases_, end in ((30, 3), (30, 30), (10, 10), (250, 17)):
        chosen = [evenly(i, cases_, (5,), simplest=False)(2, end) for i in range(cases_)]
        counts = np.bincount(chosen, minlength=end)
        assert counts.size == end
        assert counts.max() - counts.min() <= 2
        assert chosen != sorted(chosen)


@pytest.mark.parametrize("op", OPERATORS, ids=str)
def test_the_cases_of_a_check_are_distinct(op):
    for check in checks_of(op, PROFILES["default"], types_of(op)[:1], vjp=op.differentiable):
        keys = [key_of(case) for case in check.cases().cases(check.count, 0)]
        assert len({*keys}) == len(keys) == check.count


def test_a_sampler_of_few_cases_ends():
    case = ordinary_case(LINEAR_SCAN, "float32")
    assert len(drawn(10, 1, lambda draw: case)) == 1
    two = drawn(10, 1, lambda draw: ordinary_case(LINEAR_SCAN, "float32", seed=draw.below(2)))
    assert [sample.case.seed for sample in two] == [0, 1]


def test_given_choices_come_first_and_are_cut_to_the_list():
    draw = Choices(given=(1, 9))
    assert [draw.one_of("abc"), draw.one_of("abc"), draw.one_of("abc")] == ["b", "c", "a"]
    assert draw.made == [1, 2, 0]
    draw = Choices(at_random(np.random.default_rng(0)), given=(1,))
    assert draw.below(2**32) == 1
    assert draw.below(2**32) > 2**16


def test_choices_are_recorded_as_they_are_made():
    sample = made(SCANS, Choices(given=(10**6,) * 3))
    assert len(sample.choices) == 10
    assert max(sample.choices) < 100
