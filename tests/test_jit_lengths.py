"""Every mirror is right at the length of the longest sequences that are usual in benchmarks."""

import numpy as np
import pytest

from refssm.bench.work.sizes import QUADRATIC
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import find
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.ranges import parse
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import types_of
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.jit.scan import diagonal_ssm_vjp, linear_scan
from refssm.scan import LINEAR_SCAN

LENGTH = 16384
LENGTH_OF_MATRICES = 4096  # where the reference takes each step by itself, with a state of matrices
CASES = 2  # the first one is simple, the second one random
LONG = [
    op
    for op in OPERATORS
    if "l" in core_dims(op) and "jit" not in op.lacks and op.name not in QUADRATIC
]


def length_of(op):
    """The length at which it is judged."""
    family = op.reference.__module__.split(".")[1]
    by_steps = family in ("linear_attention", "xlstm", "mamba3", "kalman")
    return LENGTH_OF_MATRICES if by_steps else LENGTH


def judged(op, implementation, types):
    """The judge's results on values and gradients at this length only."""
    limits = (f"l={length_of(op)}..{length_of(op)}",)
    settings = Settings(
        cases=CASES, types=types, only_checks=("value", "gradient"), where=parse(limits, (op,)),
        limits=limits, folder=None, shrink=False, hints=False,
    )  # fmt: skip
    return list(results_of(Session(InProcess([implementation]), "here", settings)))


@pytest.mark.long
@pytest.mark.parametrize("op", LONG, ids=str)
def test_values_and_gradients_have_grade_a(op):
    module = op.implementation("jit").__module__
    (mirror,) = (f for f in find(f"{module}::{op.name}") if f.op.form == op.form)
    types = types_of(op)[-2:]  # one of each precision, complex where the operator takes it
    assert {np.finfo(t).bits for t in types} == {32, 64}
    results = judged(op, mirror, types)
    assert {r.check for r in results} == {"value", "gradient"}
    assert [(r.check, r.dtype, r.grade) for r in results if r.grade != "A"] == []


def forgetful(a, b):
    """A scan that loses its state in the middle of a sequence of this length."""
    halves = [slice(0, LENGTH // 2), slice(LENGTH // 2, None)]
    return np.concatenate([linear_scan(a[..., h, :], b[..., h, :]) for h in halves], axis=-2)


@pytest.mark.long
def test_a_state_that_is_lost_in_the_middle_fails():
    results = judged(LINEAR_SCAN, Found(LINEAR_SCAN, forgetful, None), ("float32",))
    (value,) = (r for r in results if r.check == "value")
    assert value.failed
    assert "l ≥ 8192" in value.message


def test_a_broadcast_cotangent_loses_no_more_digits_than_a_whole_one():
    u, a, one = np.full((LENGTH, 1), 6, np.float32), np.zeros(1, np.float32), np.ones((1, 1))
    B = C = D = one.astype(np.float32)
    dy = np.broadcast_to(np.float32(0.1234567), (LENGTH, 1))
    exact = LENGTH * float(dy[0, 0]) * 6
    (*_, dD, _), (*_, whole, _) = (diagonal_ssm_vjp(d, a, B, C, D, u) for d in (dy, dy.copy()))
    assert np.array_equal(dD, whole)
    assert (
        abs(dD.item() - exact) < 256 * 2.0**-24 * exact
    )  # in plain order it is 3200 roundings off
