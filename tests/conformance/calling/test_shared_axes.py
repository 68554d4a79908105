"""Layouts in which an argument lacks an axis that another one has: it is shared along it."""

from dataclasses import replace

import numpy as np
import pytest
from judging import judged, plugin, run, scan

from refssm._declaration.implements import Declaration
from refssm._declaration.layout import canonical, in_layout, parse
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import call
from refssm.conformance.cases.case import ordinary_case
from refssm.scan import LINEAR_SCAN
from refssm.selective_scan import SELECTIVE_SCAN
from refssm.testing import implements

SHARED = "l n, b l n -> b l n"  # one sequence of decays for the whole batch
FILE = """
import numpy as np

def linear_scan(a, b):
    assert (a.ndim, b.ndim) == (2, 3)
    x = np.empty_like(b, dtype=np.result_type(a, b))
    state = 0
    for k in range(b.shape[-2]):
        state = a[k] * state + b[:, k]
        x[:, k] = state
    return x
"""


def shared(a, b):
    assert (a.ndim, b.ndim) == (2, 3)
    return scan(a[None], b)


def shared_vjp(dx, a, b):
    da, db = LINEAR_SCAN.bare_vjp(dx, np.broadcast_to(a, b.shape), b)
    return da.sum(0), db


def unsummed_vjp(dx, a, b):
    """The gradient of the first member of the batch only."""
    da, db = LINEAR_SCAN.bare_vjp(dx, np.broadcast_to(a, b.shape), b)
    return da[0], db


def failures(vjp):
    how = {"profile": "default", "cases": 12, "layout": SHARED}
    lines = judged("linear_scan", shared, vjp=vjp, **how)
    assert {"value", "gradient", "batch", "causal"} <= {r.check for r in lines}
    return {r.check for r in lines if r.failed}


@pytest.mark.long
def test_decays_that_the_batch_shares_have_no_axis_of_it():
    assert failures(shared_vjp) == set()


@pytest.mark.long
def test_a_gradient_that_is_not_summed_over_the_shared_axis_is_wrong():
    assert failures(unsummed_vjp) == {"gradient"}


def test_an_axis_that_an_argument_lacks_between_others_has_length_one():
    op = in_layout(SELECTIVE_SCAN, "b d l, d l, d n, b l n, l n -> b d l")
    assert op.batch_axes == (("b", "d"), ("d",), ("d",), ("b", "1"), ())
    assert canonical(op).outputs == (("b", "d", "l"),)
    usual = "b (g d) l, b (g d) l, (g d) n, b g l n, b g l n -> b (g d) l"
    assert in_layout(SELECTIVE_SCAN, usual) is SELECTIVE_SCAN


def test_without_groups_there_is_one_and_nothing_is_looped_over():
    text = "b d l, b d l, d n, b l n, b l n -> b d l"
    op = in_layout(SELECTIVE_SCAN, text)
    assert op.batch_names == ("b", "d")
    assert parse(op, text).omitted == ()


def one_group(u, dt, A, B, C):
    """Channels that share B and C, which have no axis for them."""
    assert u.ndim == 3
    return SELECTIVE_SCAN.reference(u, dt, A, B[:, None], C[:, None])


def one_group_vjp(dy, u, dt, A, B, C):
    *others, dB, dC = SELECTIVE_SCAN.bare_vjp(dy, u, dt, A, B[:, None], C[:, None])
    return *others, dB[:, 0], dC[:, 0]


@pytest.mark.parametrize("groups", [1, 3])
def test_arrays_with_groups_go_to_a_function_without_them_and_come_back(groups):
    declared = Declaration("selective_scan", layout="b d l, b d l, d n, b l n, b l n -> b d l")
    found = Found(SELECTIVE_SCAN, one_group, one_group_vjp, declared=declared)
    case = ordinary_case(SELECTIVE_SCAN, "float64")
    case = replace(case, batch={"b": 2, "g": groups, "d": 2})
    y = SELECTIVE_SCAN.reference(*case.arrays)
    (mine,) = call(found, case.arrays, {}).outputs
    assert np.array_equal(mine, y)
    gradients = call(found, [y, *case.arrays], {}, vjp=True).outputs
    for g, wanted in zip(gradients, SELECTIVE_SCAN.vjp()(y, *case.arrays), strict=True):
        assert g.shape == wanted.shape
        assert np.allclose(g, wanted)


def test_axes_that_no_argument_has_are_looped_over_as_before():
    assert in_layout(LINEAR_SCAN, "l n, l n -> l n") is LINEAR_SCAN


@pytest.mark.parametrize("text", ["l n, l n -> b l n", "l, b l n -> b l n", "l n, b l n -> l n"])
def test_what_no_argument_has_and_core_axes_cannot_be_left_out(text):
    with pytest.raises(ValueError, match=r"^linear_scan: layout '.*' gives `[ax]` the axes"):
        implements("linear_scan", layout=text)


def test_saved_arrays_are_those_of_the_layout(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, FILE)
    a, b = np.full((4, 2), 0.5, np.float32), np.ones((3, 4, 2), np.float32)
    np.savez("batch.npz", a=a, b=b)
    code, out, _ = run(capfd, "verify", file, "--layout", SHARED, "--inputs", "batch.npz")
    assert code == 0
    assert f"layout {SHARED}; indices below are in the order l n, b l n -> b l n" in out
    np.save("out.npy", scan(a[None], b))
    graded = ("--as", "linear_scan", "--inputs", "batch.npz", "--output", "out.npy")
    code, out, _ = run(capfd, "verify", "-v", *graded, "--layout", SHARED)
    assert (code, "pass linear_scan/value" in out) == (0, True)
