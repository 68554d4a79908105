"""What checks make of a case's arguments satisfies the conditions of the operator's domains."""

import numpy as np
import pytest
from judging import judged

from refssm.catalog import OPERATORS
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.drawing import cases
from refssm.conformance.cases.partners import together, within
from refssm.conformance.checks.checks import types_of
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.number_types import number_type
from refssm.domains import conditions

CONDITIONED = [op for op in OPERATORS if any(d.holds or d.follows for d in op.inputs.values())]
NAMED = {op.name: op for op in OPERATORS}
CHANGING = ("prefix", "causal", "shift", "split", "additive", "scaling", "zero", "batch", "group",
            "repeat", "strides", "alias", "empty")  # fmt: skip


@pytest.mark.parametrize("name", [op.name for op in CONDITIONED])
def test_drawn_cases_satisfy_the_conditions_in_every_type(name):
    op = NAMED[name]
    for dtype in types_of(op, half=True):
        drawing = Drawing(cases(op, dtype, sizes=(1, 3, 16)))
        for case in drawing.cases(6, seed=3):
            assert within(op, case.arrays, case.type), case


@pytest.mark.parametrize("name", [pytest.param(op.name, marks=pytest.mark.long)
                                  for op in CONDITIONED])  # fmt: skip
def test_no_check_calls_with_arguments_outside_of_the_domain(name):
    op = NAMED[name]
    kind, left = number_type(types_of(op)[0]), []

    def watching(*arrays, **statics):
        if not within(op, arrays, kind):
            left.append([a.shape for a in arrays])
        return op.reference(*arrays, **statics)

    results = judged(name, watching, *CHANGING, types=(kind.name,), cases=4, profile="default")
    assert {r.verdict for r in results} <= {"pass", "skipped"}
    assert not left


def test_arguments_that_follow_each_other_change_together():
    assert [*together(NAMED["dplr_kernel"])] == [("w",), ("P", "Q"), ("B",), ("C",), ("dt",)]
    assert [*together(NAMED["linear_scan"])] == [("a",), ("b",)]


def test_a_right_factor_that_is_no_multiple_of_the_left_one_is_outside():
    op, kind = NAMED["dplr_kernel"], number_type("complex64")
    w, P, Q, *rest = ordinary_case(op, "complex64").arrays
    assert within(op, [w, P, Q, *rest], kind)
    assert within(op, [w, P, np.float32(3) * P, *rest], kind)
    assert not within(op, [w, P, -P, *rest], kind)  # it feeds
    turned = Q.copy()
    turned[..., 0, 0] *= np.float32(1 + 2.0**-18)
    assert not within(op, [w, P, turned, *rest], kind)
    assert not within(op, [w, 0 * P, Q, *rest], kind)


HALF = np.tril(np.full((3, 3), 0.5), -1)
OUTSIDE = [
    (conditions.short, np.array([[0.6, 0.8], [0.6, 0.81]]), np.array([[0.6, 0.79]])),
    (conditions.short_for_chunks, np.full((2, 2, 1), 0.26), np.full((2, 2, 1), 0.25)),
    (conditions.not_rising, np.array([-1.0, -2.0, -1.5]), np.array([-1.0, -2.0, -2.0])),
    (conditions.not_rising, np.array([0.5, -2.0]), np.array([0.0, -2.0])),
    (conditions.not_rising_of_keys, np.array([[-1.0], [-0.5]]), np.array([[-1.0], [-1.5]])),
    (conditions.products, HALF + np.eye(3), HALF),
    (conditions.products, 5 * HALF, 4 * HALF),
    (conditions.unit_lower, HALF, HALF + np.eye(3)),
    (conditions.unit_lower, np.eye(3) + HALF.T, np.eye(3) - HALF),
    (conditions.decaying, np.zeros((2, 2)), -np.eye(2)),
    (conditions.bounded, np.full((62, 1), 2.0), np.full((60, 1), 2.0)),
]


@pytest.mark.parametrize(("holds", "outside", "inside"), OUTSIDE)
def test_each_condition_tells_inside_from_outside(holds, outside, inside):
    assert holds(inside)
    assert not holds(outside)


def test_a_right_kernel_that_reads_only_the_triangle_of_an_inverse_is_not_refused():
    op = NAMED["chunk_writes"]
    place = [*op.inputs].index("X")

    def triangular(*arrays):
        X = arrays[place]
        unit = np.tril(X, -1) + np.eye(X.shape[-1], dtype=X.dtype)
        return op.reference(*arrays[:place], unit, *arrays[place + 1 :])

    laws = ("additive", "scaling", "zero", "alias", "repeat")
    results = judged("chunk_writes", triangular, *laws, types=("float32",), profile="default")
    assert {r.check: r.verdict for r in results} == dict.fromkeys(laws, "pass")
