"""Every operator's reference with damaged outputs: the judge refuses it, and never fails itself.

A run takes one damage for each operator, in one type: 36 runs with 36 rotations take each damage
for each, and the types of neighbours differ.
"""

from dataclasses import replace

import numpy as np
import pytest
from rotation import ROTATION

from refssm._declaration.arguments import several
from refssm.catalog import OPERATORS
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import PROFILES, default_types, types_of
from refssm.conformance.report import lines, records
from refssm.conformance.running.own_faults import DEBUG
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("their_warnings_are_not_ours")]


def filled(value):
    return lambda op, sizes, ys: [np.full_like(y, value) for y in ys]


def each(change):
    return lambda op, sizes, ys: [change(y) for y in ys]


def when_empty(value):
    return lambda op, sizes, ys: [np.full_like(y, value) if 0 in sizes else y for y in ys]


def in_the_state(change):
    return lambda op, sizes, ys: [
        change(y) if j in op.state_outputs else y for j, y in enumerate(ys)
    ]


def whole(y):
    """Integers near the right numbers."""
    return np.nan_to_num(y.real).clip(-(2.0**20), 2.0**20).astype(int)


DAMAGES = {
    "zeros": filled(0),
    "infinities": filled(np.inf),
    "NaN": filled(np.nan),
    "complex": each(lambda y: y + np.asarray(1j, np.complex64)),
    "real": each(lambda y: y.real + np.finfo(y.dtype).dtype.type(1)),
    "integers": each(whole),
    "flags": each(lambda y: y.real > 0),
    "objects": each(lambda y: y.astype(object)),
    "flat": each(lambda y: y.ravel()[:, None, None, None, None, None, None]),
    "numbers": each(lambda y: 1.0),
    "nothing": each(lambda y: None),
    "zeros when empty": when_empty(0),
    "NaN when empty": when_empty(np.nan),
    "late state": in_the_state(lambda y: y + y.dtype.type(1)),
    "state of NaN": in_the_state(lambda y: np.full_like(y, np.nan)),
    "complex state": in_the_state(lambda y: y + np.asarray(1j, np.complex64)),
    "empty state": in_the_state(lambda y: y[..., :0]),
}
NAMES = [*DAMAGES]
# in the thirty-six runs each operator has each damage; neighbours have different ones
TURN = {op.name: NAMES[(i + ROTATION) % len(NAMES)] for i, op in enumerate(OPERATORS)}
TYPE = {
    op.name: default_types(op, PROFILES["default"])[-1 - (i // len(NAMES) + ROTATION) % 2 :][0]
    for i, op in enumerate(OPERATORS)
}


def damaged(op, function, damage):
    def wrong(*arrays, **statics):
        came = function(*arrays, **statics)
        sizes = op.sizes(*arrays[len(arrays) - len(op.inputs) :], **statics).values()
        ys = damage(op, sizes, [np.asarray(y) if y is not None else y for y in several(came)])
        return tuple(ys) if isinstance(came, tuple) else ys[0]

    return wrong


def gradients(op, damage):
    """Its VJP with damaged gradients, where there are gradients and the damage is of no state."""
    if not op.differentiable or "state" in TURN[op.name]:
        return op.bare_vjp if op.differentiable else None
    of_arrays = lambda op, sizes, gs: [  # noqa: E731
        g if g is None else damage(op, sizes, [g])[0] for g in gs
    ]
    return damaged(op, op.bare_vjp, of_arrays)


@pytest.mark.parametrize("name", TURN)
def test_the_judge_has_a_verdict_on_each_damaged_reference(name, monkeypatch):
    monkeypatch.setenv(DEBUG, "1")  # an exception of refssm ends the test
    op = next(op for op in OPERATORS if op.name == name)
    damage = DAMAGES[TURN[name]]
    found = Found(op, damaged(op, op.reference, damage), gradients(op, damage))
    asked = Settings(cases=2, types=(TYPE[name],), diagnose=True, evidence=True, folder=None)
    results = list(results_of(Session(InProcess([found]), "here", asked)))
    assert results
    for result in results:
        assert lines.facts(result)
        assert not result.failed or lines.below(result)
    assert name in records.document(results, seed=0, profile="default")
    if "state" not in TURN[name] and not TURN[name].endswith(("empty", "real")):
        assert any(result.failed for result in results)


STATEFUL = ("selective_scan", "mamba_scan", "ssd_recurrent", "ssd_chunked", "diagonal_ssm_varying")


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_of_zeros_after_an_empty_piece_is_wrong_in_that_check_only(name, monkeypatch):
    monkeypatch.setenv(DEBUG, "1")
    op = next(op for op in OPERATORS if op.name == f"{name}_stateful")
    found = Found(op, damaged(op, op.reference, DAMAGES["zeros when empty"]), None)
    asked = Settings(cases=2, only_checks=("value", "empty", "shapes"), types=types_of(op)[:1])
    asked = replace(asked, diagnose=True, evidence=True, folder=None)
    results = list(results_of(Session(InProcess([found]), "here", asked)))
    assert {r.check: r.verdict for r in results} == {
        "value": "pass", "empty": "wrong", "shapes": "pass"}  # fmt: skip
    assert results[-1].message.startswith("with l=0: worst ")
