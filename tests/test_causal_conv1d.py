"""Facts of short convolutions with a bias and SiLU: beside the parts, starts, states, gradients."""

from itertools import pairwise

import numpy as np
import pytest

import refssm
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.convolution import (
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_PACKED,
    CAUSAL_CONV1D_STATEFUL,
    CAUSAL_CONV1D_STEP,
)

ROLES = ("reference", "jit")
SIZES = [(6, 3), (2, 4), (1, 1), (0, 3), (3, 0), (0, 0), (130, 4)]
FORMS = (CAUSAL_CONV1D, CAUSAL_CONV1D_PACKED, CAUSAL_CONV1D_STATEFUL, CAUSAL_CONV1D_STEP)
each_role = pytest.mark.parametrize("role", ROLES)
each_size = pytest.mark.parametrize(("l", "t"), SIZES)
each_form = pytest.mark.parametrize("op", FORMS, ids=str)


def integers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, shape).astype(float) for shape in shapes]


def arguments(op, seed, l=6, t=3, lead=()):
    u, k, bias, s = integers(seed, (*lead, l), (t,), (), (*lead, t))
    marks = np.random.default_rng(seed).random(l) < 0.3
    last = {CAUSAL_CONV1D: (), CAUSAL_CONV1D_PACKED: (marks,)}.get(op, (s,))
    return [u[..., 0] if op is CAUSAL_CONV1D_STEP else u, k, bias, *last]


def several(y):
    return y if isinstance(y, tuple) else (y,)


@each_role
@each_size
def test_it_is_silu_of_the_convolution_and_the_bias(role, l, t):
    u, k, bias, s0 = integers(1, (l,), (t,), (), (t,))
    plain, stateful = (op.implementation(role) for op in (CAUSAL_CONV1D, CAUSAL_CONV1D_STATEFUL))
    sums = refssm.short_convolution(u, k) + bias
    assert judge(CAUSAL_CONV1D, plain, u, k, bias).grade == "A"
    assert np.array_equal(plain(u, k, bias) > 0, sums > 0)  # SiLU keeps signs
    y, s = stateful(u, k, bias, s0)
    sums, kept = refssm.short_convolution_stateful(u, k, s0)
    assert np.array_equal(y == 0, sums + bias == 0)
    assert np.array_equal(s, kept)


@each_role
def test_large_sums_stay_and_very_negative_ones_vanish(role):
    u = np.array([100.0, -100.0, 1e4, -1e4, 3e38], np.float32)
    y = CAUSAL_CONV1D.implementation(role)(u, np.ones(1, np.float32), np.float32(0))
    assert np.array_equal(y[[0, 2, 4]], u[[0, 2, 4]])
    assert (np.abs(y[[1, 3]]) <= np.finfo(np.float32).tiny).all()
    slope = CAUSAL_CONV1D.vjp(role)(np.ones_like(u), u, np.ones(1, "f4"), np.zeros((), "f4"))[0]
    assert np.isfinite(slope).all()
    assert np.array_equal(slope[[0, 2, 4]], np.ones(3))


@each_role
def test_the_bias_is_there_from_the_first_step_and_after_each_reset(role):
    zeros, k, bias = np.zeros(5), np.ones(3), 2.0
    one = refssm.silu(np.float64(2.0))
    assert np.allclose(CAUSAL_CONV1D.implementation(role)(zeros, k, bias), one)
    resets = np.array([0, 0, 1, 0, 1])
    assert np.allclose(CAUSAL_CONV1D_PACKED.implementation(role)(zeros, k, bias, resets), one)


@each_role
@each_size
def test_packed_sequences_are_those_of_each_alone(role, l, t):
    u, k, bias = integers(2, (l,), (t,), ())
    resets = np.random.default_rng(3).random(l) < 0.3
    y = CAUSAL_CONV1D_PACKED.implementation(role)(u, k, bias, resets)
    cuts = [0, *(np.flatnonzero(resets[1:]) + 1), l]
    for start, end in pairwise(cuts):
        alone = CAUSAL_CONV1D.implementation(role)(u[start:end], k, bias)
        assert np.array_equal(y[start:end], alone), start


@each_role
@each_size
def test_streams_cut_anywhere_and_steps_are_the_whole(role, l, t):
    u, k, bias, s0 = integers(4, (l,), (t,), (), (t,))
    run, step = (op.implementation(role) for op in (CAUSAL_CONV1D_STATEFUL, CAUSAL_CONV1D_STEP))
    y, s = run(u, k, bias, s0)
    for cut in {0, 1, 2, l // 2, l} & {*range(l + 1)}:
        head, between = run(u[:cut], k, bias, s0)
        tail, end = run(u[cut:], k, bias, between)
        assert np.allclose(np.concatenate([head, tail]), y), cut
        assert np.array_equal(end, s), cut
    state = s0
    for i in range(l):
        out, state = step(u[i], k, bias, state)
        assert np.allclose(out, y[i]), i
    assert np.array_equal(state, s)


@each_role
def test_the_state_is_the_inputs_not_what_silu_makes_of_them(role):
    _, s = CAUSAL_CONV1D_STATEFUL.implementation(role)([5.0], [1.0, 1.0], 3.0, [7.0, -1.0])
    assert s.tolist() == [-1.0, 5.0]
    _, s = CAUSAL_CONV1D_STEP.implementation(role)(5.0, [1.0, 1.0], 3.0, [7.0, -1.0])
    assert s.tolist() == [-1.0, 5.0]


@each_role
def test_the_gradient_is_that_of_the_convolution_at_the_slope(role):
    dy, ds, u, k, s0 = integers(5, (7,), (3,), (7,), (3,), (3,))
    bias = np.float64(0.5)
    a = refssm.short_convolution_stateful(u, k, s0)[0] + bias
    g = refssm.silu_vjp(dy, a)
    du, dk, dbias, ds0 = CAUSAL_CONV1D_STATEFUL.vjp(role)(dy, ds, u, k, bias, s0)
    wanted = refssm.short_convolution_stateful_vjp(g, ds, u, k, s0)
    assert all(map(np.allclose, (du, dk, ds0), wanted))
    assert np.allclose(dbias, g.sum())


@each_role
def test_at_a_flat_sum_only_the_state_passes_gradients(role):
    """Far below 0 the slope is 0; the cotangent of the state goes around SiLU."""
    u, k, s0, ds = np.full(2, -1e4), np.ones(3), np.full(3, -1e4), np.arange(1.0, 4.0)
    du, dk, dbias, ds0 = CAUSAL_CONV1D_STATEFUL.vjp(role)(np.ones(2), ds, u, k, 0.0, s0)
    assert not dk.any()
    assert dbias == 0
    assert (du.tolist(), ds0.tolist()) == ([2.0, 3.0], [0.0, 0.0, 1.0])


@each_role
def test_the_gradient_of_the_bias_of_long_equal_terms_keeps_its_digits(role):
    l = 2**14
    u, dy = np.zeros(l, np.float32), np.full(l, 0.1, np.float32)
    dbias = CAUSAL_CONV1D.vjp(role)(dy, u, np.ones(1, "f4"), np.zeros((), "f4"))[2]
    exact = l * float(np.float32(0.1)) / 2
    assert abs(float(dbias) - exact) <= 16 * np.finfo(np.float32).eps * exact


@each_role
@each_form
def test_leading_axes_broadcast_also_those_that_only_the_bias_has(op, role):
    arrays = arguments(op, 6)
    arrays[2] = np.array([[0.0], [1.0], [-2.0]])  # (3, 1)
    arrays[1] = np.stack([arrays[1], 2 * arrays[1]])  # (2, t)
    outputs = several(op.implementation(role)(*arrays))
    assert [y.shape for y in outputs] == op.output_shapes(*arrays)
    gradients = op.vjp(role)(*outputs, *arrays)
    shapes = [None if g is None else g.shape for g in gradients]
    assert shapes == [None if a.dtype == bool else np.shape(a) for a in map(np.asarray, arrays)]
    for i in np.ndindex(3, 2):
        own = [arrays[0], arrays[1][i[1]], arrays[2][i[0], 0], *arrays[3:]]
        alone = several(op.implementation(role)(*own))
        assert all(np.allclose(y[i], z) for y, z in zip(outputs, alone, strict=True))


@each_role
@each_form
def test_results_have_the_type_of_the_arguments_and_memory_of_their_own(op, role):
    for dtype in ("float32", "float64"):
        arrays = [a if a.dtype == bool else a.astype(dtype) for a in arguments(op, 7)]
        outputs = several(op.implementation(role)(*arrays))
        gradients = [g for g in op.vjp(role)(*outputs, *arrays) if g is not None]
        assert {x.dtype for x in (*outputs, *gradients)} == {np.dtype(dtype)}
        for new in (*outputs, *gradients):
            assert not any(np.shares_memory(new, old) for old in arrays)


@each_role
def test_nan_is_heard_for_as_many_steps_as_there_are_taps_and_never_over_a_reset(role):
    u = np.ones(8)
    u[2] = np.nan
    y = CAUSAL_CONV1D.implementation(role)(u, np.ones(3), 0.0)
    assert kind_of(y).tolist() == [0, 0, 2, 2, 2, 0, 0, 0]
    packed = CAUSAL_CONV1D_PACKED.implementation(role)(u, np.ones(3), 0.0, np.arange(8) == 3)
    assert kind_of(packed).tolist() == [0, 0, 2, 0, 0, 0, 0, 0]


@each_role
def test_complex_arguments_and_wrong_sizes_are_told(role):
    plain = CAUSAL_CONV1D.implementation(role)
    with pytest.raises(TypeError, match=r"^causal_conv1d: `u` has dtype complex128, wanted a real"):
        plain(np.ones(3) + 0j, np.ones(2), 0.0)
    with pytest.raises(ValueError, match=r"^causal_conv1d_step: `s` has t=4, but earlier argum"):
        CAUSAL_CONV1D_STEP.implementation(role)(1.0, np.ones(3), 0.0, np.ones(4))
    with pytest.raises(TypeError, match=r"missing a required argument: 'bias'"):
        plain(np.ones(3), np.ones(2))
