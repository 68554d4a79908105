"""Outputs that are an argument where another one is 0."""

import pytest

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.limits import holds_zero
from refssm.conformance.cases.ranges import narrowed, parse
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

SCAN = operator_named("linear_scan")


def line(op, forward, where=()):
    """The result of `alias` on one implementation."""
    asked = Settings(only_checks=("alias",), shrink=False, folder=None, where=parse(where, [op]))
    return list(results_of(Session(InProcess([Found(op, forward, None)]), "here", asked)))[-1]


def test_an_argument_that_is_returned_where_no_decay_is_left_is_seen():
    def shortcut(a, b):
        return SCAN.reference(a, b) if a.any() else b

    result = line(SCAN, shortcut)
    assert result.verdict == "wrong"
    assert result.message == "where `a` = 0 an output shares memory with `b`"


def test_a_state_that_is_returned_where_all_else_is_0_is_seen():
    op = operator_named("kimi_delta_step")

    def shortcut(q, k, v, log_g, beta, S):
        if beta.any() or log_g.any() or not S.any():
            return op.reference(q, k, v, log_g, beta, S)
        return (S * q[..., None]).sum(-2), S

    result = line(op, shortcut)
    assert result.verdict == "wrong"
    assert result.message == "where all but `S` are 0 an output shares memory with `S`"


def test_a_state_that_is_returned_where_there_is_no_step_is_a_note():
    op = operator_named("delta_rule_stateful")

    def shortcut(q, k, v, beta, S0):
        y, S = op.reference(q, k, v, beta, S0)
        return y, S if k.shape[-2] else S0

    result = line(op, shortcut)
    assert result.verdict == "pass"
    assert "at l=0 an output shares memory with `S0`" in result.notes


def test_a_copy_of_it_is_right_and_zeros_outside_of_a_range_are_not_tried():
    def shortcut(a, b):
        assert (a > 0).all() or not where
        return SCAN.reference(a, b) if a.any() else b.copy()

    for where in ((), ("a=0.5..1",)):
        assert line(SCAN, shortcut, where).verdict == "pass"


def test_a_call_that_fails_where_an_argument_is_0_is_no_matter_of_this_check():
    def refusing(a, b):
        if not a.any():
            raise ZeroDivisionError
        return SCAN.reference(a, b)

    assert line(SCAN, refusing).verdict == "pass"


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("linear_scan", "a", True),  # a map
        ("linear_scan", "b", True),  # a texture: impulses
        ("discretize_zoh", "dt", False),
        ("cauchy_kernel", "z", True),
    ],
)
def test_zeros_are_tried_of_arguments_that_may_be_zero(name, argument, expected):
    assert holds_zero(operator_named(name).inputs[argument], False) == expected


def test_a_range_that_excludes_zero_excludes_it_from_every_texture():
    narrow = parse(["b=1..2"], [SCAN])
    assert not holds_zero(narrowed(SCAN, narrow).inputs["b"], True)
