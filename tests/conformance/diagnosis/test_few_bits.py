"""Which number has the bits of a coarser type: told where a call shows it, and only there."""

import numpy as np
import pytest
from judging import rounded_to

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.diagnosis import pattern
from refssm.conformance.judging.expected import remembering
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.testing import Declaration

SCAN = operator_named("linear_scan")
STEP = operator_named("rwkv6_step")


def told_of(op, function, check="value", vjp=None):
    """What the wrong result of a function in single precision looks like."""
    found = Found(op, function, vjp, declared=Declaration(op.name, dtypes=("float32",)))
    how = {"only_checks": (check,), "types": ("float32",), "folder": None, "diagnose": True}
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "", Settings(**how)))
    assert line.failed, line
    return line.looks_like


def _low(x, digits=8):
    return rounded_to(digits, x) if x.dtype == np.float32 else x


@pytest.mark.parametrize(
    ("bits", "arithmetic"),
    [(8, "bfloat16"), pytest.param(11, "TF32 or float16", marks=pytest.mark.long)],
)
def test_the_argument_that_is_stored_in_few_bits_is_named(bits, arithmetic):
    told = told_of(SCAN, lambda a, b: SCAN.reference(a, _low(b, bits)))
    assert told == f"`b` is rounded to {bits} bits ({arithmetic})"


@pytest.mark.long
def test_two_such_arguments_are_named():
    told = told_of(SCAN, lambda a, b: SCAN.reference(_low(a), _low(b)))
    assert told == "`a` and `b` are rounded to 8 bits (bfloat16)"


def test_a_state_that_is_stored_in_few_bits_is_named():
    def step(*arguments):
        y, S = STEP.reference(*arguments)
        return y, _low(S)

    assert told_of(STEP, step) == "`S_next` is rounded to 8 bits (bfloat16)"


def test_one_number_of_few_bits_among_others_is_not_called_an_arithmetic_of_eleven_bits():
    def program(a, b):
        return SCAN.reference(a, b * ((1 + _low(a / 99)) / (1 + a / 99)))

    told = told_of(SCAN, program)
    assert told.endswith("or of one number in bfloat16 in some step"), told


@pytest.mark.long
def test_where_no_call_shows_which_number_it_is_the_size_of_errors_is_told(monkeypatch):
    monkeypatch.setattr(pattern, "few_bits", lambda *_: "")
    told = told_of(SCAN, lambda a, b: SCAN.reference(a, _low(b)))
    assert told == "errors as large as those of bfloat16 (8 bits) in some step"


@pytest.mark.long
def test_an_argument_without_influence_and_a_right_one_are_not_named():
    def program(a, b):
        return SCAN.reference(a, b) * (1 + 2.0**-9 * np.sign(_low(b) - b))

    assert "`" not in told_of(SCAN, program)


@pytest.mark.long
def test_a_gradient_one_step_late_is_no_arithmetic_of_few_bits_though_its_bound_is_large():
    op = operator_named("mlstm")

    def late(dy, *arguments, **statics):
        *others, df = op.vjp()(dy, *arguments, **statics)
        return *others, np.concatenate([df[..., 1:], 0 * df[..., :1]], axis=-1)

    assert "bits" not in told_of(op, op.reference, "gradient", late)
