"""Sentences that were untrue of a wrong program, and what is said of such programs instead."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.diagnosis import hints
from refssm.conformance.diagnosis.place import _carried_back, _only_last_step
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.conformance.standard import Standard
from refssm.testing import Declaration

SCAN = operator_named("linear_scan").reference


pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")


def failure(name, function, check="value", wider=(), **more):
    """The first result of a failing implementation of one check in single precision."""
    declared = Declaration(name, dtypes=("float32", *wider))
    found = Found(operator_named(name), function, None, declared=declared)
    how = {"only_checks": (check,), "types": ("float32", *wider), "folder": None, "diagnose": True}
    with remembering():
        line, *_ = results_of(Session(InProcess([found]), "", Settings(**how, **more)))
    assert line.failed, line
    return line


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ("right right wrong right wrong", hints.FLUSHED),
        ("right right right", ""),  # the failing call does not fail again
        ("right right wrong wrong", ""),
        ("right right wrong right right", ""),
        ("right wrong", ""),
        ("wrong", ""),
    ],
)
def test_ftz_is_offered_only_for_a_failure_that_comes_each_time(verdicts, told, monkeypatch):
    outcomes = iter([Verdict("A" if word == "right" else "F") for word in verdicts.split()])
    monkeypatch.setattr(hints, "verdict_on", lambda *_: next(outcomes))
    monkeypatch.setattr(hints, "_normal", lambda case: case)
    candidate: Any = SimpleNamespace(standard=Standard.of("float32"))
    case: Any = None
    check: Any = SimpleNamespace(judge_arrays=None)
    assert hints.flushed(check, candidate, case) == told
    assert not [*outcomes]


def every(period, wrong):
    """A scan whose calls are right but for one in `period`."""
    calls = [0]

    def program(a, b):
        calls[0] += 1
        return SCAN(a, b) if calls[0] % period else wrong(a, b)

    return program


@pytest.mark.long
@pytest.mark.parametrize("period", [3, 7])
def test_a_failure_of_some_calls_is_neither_flushing_nor_rounding(period):
    line = failure("linear_scan", every(period, lambda a, b: SCAN(a, b) * b.dtype.type(1.01)))
    assert "ftz" not in line.hint
    assert "right in" not in line.hint
    assert "bits" not in line.looks_like


def raising(a, b):
    raise RuntimeError("out of memory")


@pytest.mark.long
@pytest.mark.parametrize("period", [1, 7])
def test_a_function_that_raises_is_not_said_to_read_memory_that_nobody_wrote(period):
    assert failure("linear_scan", every(period, raising)).looks_like == ""


@pytest.mark.long
def test_negative_strides_that_are_refused_are_no_changing_answer():
    def contiguous_only(a, b):
        if min(*a.strides, *b.strides, 0) < 0:
            raise ValueError("negative strides are not supported")
        return SCAN(a, b)

    line = failure("linear_scan", contiguous_only, "strides")
    assert "raised ValueError: negative strides" in line.message
    assert line.looks_like == ""


@pytest.mark.long
def test_a_dropped_term_is_not_said_to_be_arithmetic_of_few_bits():
    def second_order(w, B, C, dt, *, l):
        z = dt[..., None] * w
        gain = C * B * dt[..., None] * (1 + z / 2 + z * z / 6)  # (e^z − 1)/z
        powers = np.exp(z[..., None] * np.arange(l).astype(z.real.dtype))
        return (gain[..., None] * powers).sum(-2).astype(np.result_type(w, B, C, dt))

    line = failure("diagonal_kernel_zoh", second_order, wider=("float64",))
    assert line.looks_like == ""
    assert line.hint.startswith("equally wrong in float64: the formula is wrong")


@pytest.mark.long
def test_lengths_that_raise_are_not_said_to_be_all_below_a_block():
    def powers_of_two(a, b):
        if b.shape[-2] in {*range(16)} - {0, 1, 2, 4, 8}:
            raise ValueError("no power of two")
        return SCAN(a, b)

    line = failure("linear_scan", powers_of_two)
    assert line.looks_like == ""
    assert line.smallest.startswith("l=3 ")


def by_product(a, b):
    """Each channel by a row of an identity matrix: NaN of one channel reaches all."""
    x = SCAN(a, b)
    return (x @ np.eye(x.shape[-1], dtype=x.dtype)).astype(x.dtype)


@pytest.mark.long
def test_a_nan_times_zero_is_not_a_channel_used_for_all():
    line = failure("linear_scan", by_product, "nan")
    assert "the first" not in line.looks_like
    assert line.hint.startswith("NaN of `b[0, 0, 1]` reaches entries that do not depend on it")
    assert line.hint.endswith("because 0 times NaN is NaN")


@pytest.mark.long
def test_a_nan_that_spreads_in_some_calls_only_gets_no_hint():
    calls = [0]

    def unsteady(a, b):
        calls[0] += 1
        return by_product(a, b) if calls[0] % 2 else SCAN(a, b)

    assert "times NaN" not in failure("linear_scan", unsteady, "nan").hint


def wrong_at(size, *places):
    return np.isin(np.arange(size), places)


def test_the_last_step_of_two_or_three_is_no_loop_that_ends_early():
    short = [wrong_at(2, 1), wrong_at(3, 2)]
    assert not _only_last_step(short)
    assert _only_last_step([*short, wrong_at(9, 8)])
    assert not _only_last_step([*short, wrong_at(9, 7, 8)])


def test_a_gradient_wrong_up_to_a_border_is_told_by_blocks_no_smaller_ones_could_be():
    def until(size, last):
        return np.arange(size) < last

    assert "block of 32 back" in _carried_back([until(60, 32), until(100, 96)])
    assert _carried_back([until(65, 64), until(129, 128)]) == ""  # as of 32 or of 16
    assert _carried_back([until(60, 32), until(100, 95)]) == ""
    assert _carried_back([until(60, 32), until(64, 64)]) == ""  # the last block is right


@pytest.mark.long
def test_what_raises_for_a_longer_input_is_shown_at_that_length():
    def short_only(a, b):
        if b.shape[-2] > 64:
            raise RuntimeError("too long")
        return SCAN(a, b)

    line = failure("linear_scan", short_only, "repeat", shrink=False)
    assert line.message.startswith("at l=257 raised RuntimeError: too long")
    assert line.smallest.startswith("l=257 ")
