"""The mirror of state-space duality computes pieces of 32 steps: their borders, resets and NaN."""

import numpy as np
import pytest
from calls import several

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.jit.ssd import kernels
from refssm.jit.ssd.heads import GROUP, grouped
from refssm.ssd import SSD_RECURRENT, SSD_RECURRENT_PACKED, SSD_RECURRENT_STATEFUL

REAL = ("float32", "float64")


def drawn(seed, dtype, l, p=5, n=7, h=3):
    """x, log_a, B, C and S0 of h heads that share B and C."""
    rng = np.random.default_rng(seed)
    x, S0 = rng.standard_normal((h, l, p)), rng.standard_normal((h, p, n))
    B, C = rng.standard_normal((2, 1, l, n))
    log_a = -rng.uniform(1e-3, 0.5, (h, l))
    return [c.astype(dtype) for c in (x, log_a, B, C, S0)]


def accepted(op, arrays):
    """True where the mirror of this operator has grade A, and its gradients, too."""
    mirror = op.implementation("jit")
    cotangents = [c[::-1].copy() for c in several(op.implementation("reference")(*arrays))]
    gauges = expect(op, [*cotangents, *arrays], vjp=op.bare_vjp)
    gradients = [g for g in op.vjp("jit")(*cotangents, *arrays) if g is not None]
    grades = [compare(g, gauge, g.dtype).grade for g, gauge in zip(gradients, gauges, strict=True)]
    return {judge(op, mirror, *arrays).grade, *grades} == {"A"}


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("l", [7, 8, 31, 32, 33, 64, 65, 100])
def test_a_piece_may_end_anywhere(dtype, l):
    assert accepted(SSD_RECURRENT_STATEFUL, drawn(l, dtype, l))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize(("p", "n", "h"), [(1, 1, 1), (16, 16, 2), (17, 33, 4), (64, 128, 6)])
def test_rows_need_not_be_whole_vectors(dtype, p, n, h):
    assert accepted(SSD_RECURRENT_STATEFUL, drawn(p, dtype, 40, p, n, h))


@pytest.mark.long
def test_more_steps_than_one_span():
    assert accepted(SSD_RECURRENT_STATEFUL, drawn(0, "float32", 2 * 4096 + 37, 2, 3, 2))


@pytest.mark.parametrize("place", range(34))
def test_nothing_passes_a_reset_anywhere_in_a_piece(place):
    arrays = drawn(place, "float32", 70)[:4]
    resets = np.zeros(70, bool)
    resets[[place, 50]] = True
    assert accepted(SSD_RECURRENT_PACKED, (*arrays, resets))
    x, log_a, B, C = (c.copy() for c in arrays)
    x[:, :place], B[:, :place], log_a[:, : place + 1] = np.nan, np.nan, np.nan
    y = SSD_RECURRENT_PACKED.implementation("jit")(x, log_a, B, C, resets)[:, place:]
    x, log_a, B, C = arrays
    alone = x[:, place:], log_a[:, place:], B[:, place:], C[:, place:], resets[place:]
    assert judge(SSD_RECURRENT_PACKED, lambda *_: y, *alone).grade == "A"


@pytest.mark.parametrize("t", [0, 1, 31, 32, 40])
def test_nan_in_a_piece_does_not_reach_earlier_steps_or_other_rows(t):
    x, log_a, B, C, _ = drawn(1, "float64", 70)
    x[1, t, 2] = np.nan
    y = SSD_RECURRENT.implementation("jit")(x, log_a, B, C)
    seen = np.zeros(y.shape, bool)
    seen[1, t:, 2] = True
    assert np.array_equal(np.isnan(y), seen)


@pytest.mark.parametrize("dtype", REAL)
def test_decays_of_zero_are_allowed_anywhere(dtype):
    x, log_a, B, C, S0 = drawn(2, dtype, 70)
    log_a[:, ::3] = -np.inf
    assert accepted(SSD_RECURRENT_STATEFUL, (x, log_a, B, C, S0))


def test_a_slice_without_finite_results_is_computed_step_by_step(monkeypatch):
    x, log_a, B, C, _ = drawn(3, "float32", 40)
    called = []
    steps = kernels._scan_steps
    monkeypatch.setattr(kernels, "_scan_steps", lambda *a: called.append(1) or steps(*a))
    SSD_RECURRENT.implementation("jit")(x, log_a, B, C)
    assert not called
    x[0, 39, 0] = np.inf
    SSD_RECURRENT.implementation("jit")(x, log_a, B, C)
    assert called


def test_heads_that_share_b_and_c_are_grouped():
    x, log_a, B, C, _ = drawn(4, "float32", 8, h=2 * GROUP)
    (some, decays), batch = grouped(((x, 2), (log_a, 1)), ((B, 2), (C, 2)))
    assert some.shape == (2, GROUP, 8, 5)
    assert decays.shape == (2, GROUP, 8)
    assert batch == (2 * GROUP,)
    (alone,), _ = grouped(((x, 2),), ((x, 2),))
    assert alone.shape == (2 * GROUP, 1, 8, 5)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", [7, 16, 48])
@pytest.mark.parametrize("turned", [False, True])
def test_one_step_is_right_in_whole_vectors_and_one_by_one(dtype, n, turned):
    *arrays, S0 = drawn(3, dtype, 1, n=n)
    S0 = np.swapaxes(np.swapaxes(S0, 1, 2).copy(), 1, 2) if turned else S0
    assert accepted(SSD_RECURRENT_STATEFUL, [*arrays, S0])
    resets = np.ones((1, 1), bool)
    assert accepted(SSD_RECURRENT_PACKED, [*arrays, resets])
