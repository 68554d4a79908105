"""Laws of a scan, on the judge's cases: run them with `pytest docs/examples/laws_of_scans.py`."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import refssm
from refssm.testing import bound, cases, expected

patient = settings(deadline=None)  # values and bounds of a case may take longer than 200 ms


@given(cases("selective_scan", dtype="float32"))
@patient
def test_linear_in_u(case):
    u = case.arguments["u"]
    even = np.arange(u.shape[-1]) % 2 == 0
    whole, first, second = calls = [case, case.changed(u=u * even), case.changed(u=u * ~even)]
    y, y1, y2 = (refssm.selective_scan(*call.arrays) for call in calls)
    allowed = bound(whole, y) + bound(first, y1) + bound(second, y2)
    assert (np.abs(y - (y1.astype(float) + y2)) <= allowed).all()


@given(cases("selective_scan_stateful"), st.data())
@patient
def test_a_scan_may_be_cut_anywhere(case, data):
    k = data.draw(st.integers(0, case.sizes["l"]))
    y1, x = refssm.selective_scan_stateful(*case.steps(0, k).arrays)
    second = case.steps(k, None).changed(x0=x)
    y2, x = refssm.selective_scan_stateful(*second.arrays)
    y = np.concatenate([y1, y2], axis=-1)
    wanted, allowed = expected(case), bound(case, (y, x), grade="B")
    assert (np.abs(y - wanted[0]) <= allowed[0]).all()
    assert (np.abs(x - wanted[1]) <= allowed[1]).all()


def my_scan(a, b):
    """x_k = a_k x_{k-1} + b_k by doubling: log2(l) steps, each for all k at once."""
    a, x, shift = a.copy(), b.copy(), 1
    while shift < x.shape[-2]:
        later = a[..., shift:, :]
        x[..., shift:, :] += later * x[..., :-shift, :].copy()
        a[..., shift:, :] = later * a[..., :-shift, :].copy()
        shift *= 2
    return x


@given(cases("linear_scan", "float32", where="l=1..300"))
@patient
def test_my_scan(case):
    x = my_scan(*case.arrays)
    assert (np.abs(x - expected(case)) <= bound(case, x)).all()
