"""Measured bounds of short kernels, and of members of a batch in which no program errs."""

import numpy as np
import pytest

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.gauges.programs import measured as measuring
from refssm.conformance.gauges.programs.dplr_gradients import at_few_steps
from refssm.conformance.judging.expected import expect


def short_kernels(dt, C):
    """One mode of each pair with w = −1, P = Q = 1/2 and B = 1 in each member of a batch."""
    d, ones = len(dt), np.ones((len(dt), 1), np.complex64)
    halves = np.full((d, 1, 1), 0.5, np.complex64)
    return [-ones, halves, halves, ones, np.array(C, np.complex64)[:, None], np.float32(dt)]


def by_step(arrays, l):
    """The gauge of the gradient by dt for cotangents of 1."""
    op = operator_named("dplr_kernel_aliased_real")
    dk = np.ones((len(arrays[-1]), l), np.float32)
    return expect(op, [dk, *arrays], {"l": l}, op.bare_vjp)[-1]


def test_a_gradient_by_dt_that_cancels_in_a_short_kernel_is_bounded_by_its_terms():
    gauge = by_step(short_kernels([2.0**-9, 0.5], [1, 1]), 5)  # the second is no short one
    assert np.abs(gauge.value[0]) < 1e-12
    assert 100 < gauge.k0[0] < 1e4  # w̄ dw is 0.9, over dt
    assert gauge.k0[1] < 50


def test_a_member_of_the_batch_without_outputs_does_not_decide_for_the_others():
    alone = by_step(short_kernels([0.25], [1]), 1).k0
    both = by_step(short_kernels([0.25, 0.25], [0, 1]), 1)
    assert both.k0[1] == alone[0] > 1


def test_more_copies_count_for_the_members_in_which_a_program_errs(monkeypatch):
    both = by_step(short_kernels([0.25, 0.25], [0, 1]), 1)
    found = [np.full((2, 1), np.inf)] * 5 + [np.array([np.inf, 100 * both.k0[1]])]
    monkeypatch.setattr(measuring, "_compared", lambda *_: found)
    assert both.more_copies is not None
    assert both.more_copies().tolist() == [both.k0[0], 100 * both.k0[1]]


@pytest.mark.parametrize(("first", "second", "other"), [(0, 1, False), (1, 1, True)])
def test_a_member_of_the_batch_is_another_case_if_all_of_its_results_change(first, second, other):
    values = [np.ones((2, 3)), np.ones((2, 4))]
    on_copies = [np.ones((4, 2, 3)), np.ones((4, 2, 4))]
    for copies, member in zip(on_copies, (first, second), strict=True):
        copies[2, member, 1] = 3
    assert measuring._is_another_case(on_copies, values, [1, 1]) is other


def test_a_kernel_with_a_large_low_rank_part_is_not_short():
    arrays = short_kernels([0.5], [1])
    arrays[0] = np.full((1, 1), -1e-3, np.complex64)
    arrays[1] = arrays[2] = np.ones((1, 1, 1), np.complex64)
    found = at_few_steps(np.ones((1, 500), np.float32), *arrays, l=500)
    assert found is None
