"""Bounds of scans with one decay per step: measured where they are long, derived for few steps."""

from typing import Any, cast

import numpy as np
import pytest

from refssm._declaration.arguments import several
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.gauges import contracts
from refssm.conformance.gauges.contracts import bounds
from refssm.conformance.gauges.cumulated import FORMS
from refssm.conformance.gauges.programs import measured
from refssm.conformance.gauges.programs import scan as programs
from refssm.conformance.gauges.programs.arithmetic import to_one_side
from refssm.conformance.gauges.programs.scan import (
    AGAIN_GRADIENTS,
    AGAIN_OUTPUTS,
    GRADIENTS,
    OUTPUTS,
    SHORT,
)
from refssm.conformance.judging.grading import judge

LONG = 2049


def called(name, dtype="complex128", steps=SHORT + 36):
    op, rng = operator_named(name), np.random.default_rng(5)
    case = ordinary_case(op, dtype, sizes=(steps, 5, 4, 2))
    outputs = several(op.reference(*case.arrays, **case.statics))
    return op, case, [rng.standard_normal(y.shape).astype(y.dtype) for y in outputs]


def same(found, wanted):
    for y, of in zip(several(found), several(wanted), strict=True):
        assert (y is None) == (of is None)
        assert y is None or np.abs(y - of).max() <= 1e-12 * np.abs(of).max()


@pytest.mark.parametrize("name", FORMS)
def test_each_way_of_scanning_gives_the_outputs_and_gradients_of_the_reference(name):
    op, case, cotangents = called(name)
    wanted = op.reference(*case.arrays, **case.statics)
    for program in (*OUTPUTS[name].values(), *AGAIN_OUTPUTS.get(name, {}).values()):
        same(program(*case.arrays, **case.statics), wanted)
    given = (*cotangents, *case.arrays)
    wanted = op.bare_vjp(*given, **case.statics)
    for program in (*GRADIENTS[name].values(), *AGAIN_GRADIENTS.get(name, {}).values()):
        same(program(*given, **case.statics), wanted)


def test_short_cases_have_the_derived_bound():
    for steps, is_measured in ((SHORT, False), (SHORT + 1, True)):
        op, case, _ = called("linear_scan", "float32", steps)
        (gauge,) = bounds(op, case.arrays, {}, None, unit=2.0**-24, floor=0.0)
        assert (gauge.derive is not None) == is_measured


def test_a_state_with_half_of_the_digits_is_no_longer_a(monkeypatch):
    op, rng = operator_named("linear_scan"), np.random.default_rng(3)
    a, b = np.full((LONG, 1), 0.999, np.float32), rng.standard_normal((LONG, 1)).astype(np.float32)

    def grade():
        x = op.reference(a, b)
        x[np.argmax(np.abs(x))] *= np.float32(1 + 2.0**-12)
        return judge(op, lambda *_: x, a, b).grade

    assert judge(op, op.reference, a, b).grade == "A"
    assert grade() != "A"
    monkeypatch.setattr(contracts, "output_programs", lambda op: None)
    assert grade() == "A"


def test_a_case_with_many_states_has_the_derived_bound(monkeypatch):
    monkeypatch.setattr(programs, "MOST", 1000)
    op, case, _ = called("linear_scan", "float32")
    (gauge,) = bounds(op, case.arrays, {}, None, unit=2.0**-24, floor=0.0)
    assert gauge.derive is None


def test_decays_of_all_steps_are_rounded_to_the_same_side():
    exact = np.full((200, 5), 1 - 2**-26)
    rounded = to_one_side(exact, np.float32)
    assert set(rounded.ravel().tolist()) == {1.0, 1 - 2**-24}
    assert (rounded == rounded[0]).all()
    assert (to_one_side(np.full((3, 2), 0.75), np.float32) == 0.75).all()


def test_an_exponential_off_by_two_roundings_at_each_step_is_right(monkeypatch):
    dt = np.float32(0.9400000000000004 * 2.0**-13)  # e^{−dt} is nearly a number of float32
    ones, u = np.ones((LONG, 1), np.float32), np.zeros(LONG, np.float32)
    arrays = [u, np.full(LONG, dt), -ones[0], ones, ones, ones[0]]
    a = np.exp(-dt)
    for _ in range(2):
        a = np.nextafter(a, np.float32(2))
    y = [x := ones[0]]
    for _ in range(LONG):
        y.append(x := a * x)
    found = np.stack(y[1:])[:, 0], y[-1]
    op = operator_named("selective_scan_stateful")
    monkeypatch.setattr(measured, "AT_RANDOM", 0)
    assert judge(op, lambda *_: found, *arrays).ok
    monkeypatch.setattr(contracts, "AGAIN_OUTPUTS", cast(Any, {}))
    assert not judge(op, lambda *_: found, *arrays).ok
