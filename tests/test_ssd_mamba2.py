"""Mamba-2's whole call: by hand, against the recurrence and Mamba's scan, limits of the steps."""

import re

import numpy as np
import pytest
from calls import several
from judging import judged, rounded_to
from selective import ROLES, usual

import refssm
from refssm.activations import silu, softplus
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, judge
from refssm.selective_scan import MAMBA_SCAN_STATEFUL
from refssm.ssd import (
    MAMBA2_SCAN,
    MAMBA2_SCAN_PACKED,
    MAMBA2_SCAN_STATEFUL,
    MAMBA2_STEP,
    SSD_RECURRENT_STATEFUL,
)

BATCH = {"b": 2, "g": 2, "h": 3}
LIMITS = {"dt_min": 0.25, "dt_max": 1.0}
each_role = pytest.mark.parametrize("role", ROLES)
each_type = pytest.mark.parametrize("dtype", ["float32", "float64"])


def drawn(op, seed, dtype="float64", batch=None, **sizes):
    """Ordinary arguments; the steps lie on both sides of the limits."""
    arrays = usual(op, seed, dtype, batch, **sizes)
    arrays[1] = arrays[1] * 2
    return arrays


@each_role
def test_two_steps_by_hand(role):
    # softplus and silu are the identity at 50
    x, z = [[2.0], [3.0]], [[50.0], [60.0]]
    arrays = x, [40.0, 45.0], 0.0, [[5.0], [7.0]], [[11.0], [13.0]], 17.0, z, 10.0, [[19.0]]
    y, S = MAMBA2_SCAN_STATEFUL.implementation(role)(*arrays)
    first = 19 + 50 * 2 * 5
    last = first + 55 * 3 * 7
    assert y.ravel().tolist() == [(first * 11 + 17 * 2) * 50, (last * 13 + 17 * 3) * 60]
    assert S.tolist() == [[last]]


@each_role
def test_a_gradient_by_hand(role):
    arrays = [[2.0]], [40.0], 0.0, [[5.0]], [[11.0]], 17.0, [[50.0]], 10.0, [[19.0]]
    back = MAMBA2_SCAN_STATEFUL.vjp(role)([[1.0]], [[3.0]], *arrays)
    dx, ddt, dA, dB, dC, dD, dz, dbias, dS0 = (float(g.ravel()[0]) for g in back)
    G = 50 * 11 + 3  # of the state, ds = 50
    assert dx == 50 * G * 5 + 17 * 50
    assert ddt == dbias == G * 5 * 2
    assert dA == 50 * 19 * G
    assert (dB, dC) == (G * 100, 50 * (19 + 500))
    assert (dD, dS0) == (2 * 50, G)
    assert dz == (19 + 500) * 11 + 17 * 2


@each_role
@each_type
def test_it_is_the_recurrence_between_softplus_and_gate(role, dtype):
    x, dt, A, B, C, D, z, dt_bias, S0 = arrays = drawn(MAMBA2_SCAN_STATEFUL, 1, dtype, BATCH)
    step = np.clip(softplus(dt + dt_bias[..., None]), LIMITS["dt_min"], LIMITS["dt_max"])
    given = step[..., None] * x, step * A[..., None], B, C, S0
    s, S = SSD_RECURRENT_STATEFUL.implementation(role)(*given)
    y = (s + D[..., None, None] * x) * silu(z)
    verdict = judge(MAMBA2_SCAN_STATEFUL, lambda *_, **__: (y, S), *arrays, **LIMITS)
    assert verdict.grade == "A"
    scan = MAMBA2_SCAN_STATEFUL.implementation(role)
    assert judge(MAMBA2_SCAN_STATEFUL, scan, *arrays, **LIMITS).grade == "A"


@each_role
def test_a_head_of_one_number_with_one_state_is_mambas_scan(role):
    u, dt, A, B, C, D, z, dt_bias, x0 = arrays = usual(MAMBA_SCAN_STATEFUL, 2, n=1)
    call = u[:, None], dt, A[0], B, C, D, z[:, None], dt_bias, x0[None]
    y, S = MAMBA2_SCAN_STATEFUL.implementation(role)(*call)
    assert judge(MAMBA_SCAN_STATEFUL, lambda *_: (y[:, 0], S[0]), *arrays).ok
    cotangents = np.ones_like(y[:, 0]), np.ones_like(x0)
    wanted = expect(MAMBA_SCAN_STATEFUL, [*cotangents, *arrays], vjp=MAMBA_SCAN_STATEFUL.bare_vjp)
    got = MAMBA2_SCAN_STATEFUL.vjp(role)(np.ones_like(y), np.ones_like(S), *call)
    for g, gauge, a in zip(got, wanted, arrays, strict=True):
        assert compare(g.reshape(a.shape), gauge, a.dtype).ok


@each_role
def test_without_limits_is_with_limits_that_no_step_reaches(role):
    arrays = drawn(MAMBA2_SCAN, 3, batch=BATCH)
    scan = MAMBA2_SCAN.implementation(role)
    y = scan(*arrays)
    assert np.array_equal(scan(*arrays, dt_min=0.0, dt_max=np.inf), y)
    assert np.array_equal(scan(*arrays, dt_max=1e3), y)
    assert not np.array_equal(scan(*arrays, **LIMITS), y)


@each_role
def test_steps_at_a_limit_are_the_limit(role):
    arrays = drawn(MAMBA2_SCAN_STATEFUL, 4, batch=BATCH)
    for dt, step in ((-80.0, 0.25), (80.0, 1.0)):
        x, _, A, B, C, D, z, dt_bias, S0 = arrays
        given = x, np.full_like(arrays[1], dt), A, B, C, D, z, 0 * dt_bias, S0
        y, S = MAMBA2_SCAN_STATEFUL.implementation(role)(*given, **LIMITS)
        log_a = step * A[..., None] + 0 * arrays[1]
        s, wanted = SSD_RECURRENT_STATEFUL.reference(step * x, log_a, B, C, S0)
        np.testing.assert_allclose(S, wanted, rtol=1e-12)
        np.testing.assert_allclose(y, (s + D[..., None, None] * x) * silu(z), rtol=1e-12)


def gradient_of_dt(role, v, **limits):
    """The gradient of dt in one step whose output is 60 Δ."""
    arrays = [1.0], v, 0.0, [1.0], [1.0], 0.0, [60.0], 0.0, [[0.0]]
    _, ddt, *_, dbias, _ = MAMBA2_STEP.vjp(role)([1.0], [[0.0]], *arrays, **limits)
    assert ddt == dbias
    return float(ddt)


@each_role
def test_the_gradient_of_a_step_passes_between_the_limits_and_at_them_only(role):
    inside = {"dt_min": 45.0, "dt_max": 50.0}  # where the softplus is the identity
    passed = [gradient_of_dt(role, v, **inside) for v in (44.0, 45.0, 47.0, 50.0, 51.0)]
    assert passed == [0, 60, 60, 60, 0]
    assert gradient_of_dt(role, -np.inf) == 0
    assert gradient_of_dt(role, -700.0) > 0  # 0 is no limit
    assert gradient_of_dt(role, 3e38) == 60


@each_role
def test_but_for_the_limits_themselves_the_gradient_is_that_of_pytorchs_clamp(role):
    torch = pytest.importorskip("torch")
    numbers = [44.0, 46.0, 47.0, 49.0, 51.0]
    v = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    (60 * torch.clamp(torch.nn.functional.softplus(v), 45.0, 50.0)).sum().backward()
    assert v.grad is not None
    assert v.grad.tolist() == [gradient_of_dt(role, x, dt_min=45.0, dt_max=50.0) for x in numbers]


@each_role
def test_the_skip_is_added_before_the_gate_and_sees_no_step(role):
    arrays = drawn(MAMBA2_SCAN, 5, batch=BATCH)
    x, _, _, B, _, D, z, _ = arrays
    B[:] = 0
    y = MAMBA2_SCAN.implementation(role)(*arrays)
    np.testing.assert_allclose(y, D[..., None, None] * x * silu(z), rtol=1e-14)
    z[:] = 0
    assert not MAMBA2_SCAN.implementation(role)(*arrays).any()


@each_role
@each_type
def test_the_state_is_not_gated(role, dtype):
    *arrays, S0 = drawn(MAMBA2_SCAN_STATEFUL, 6, dtype, BATCH)
    _, S = MAMBA2_SCAN_STATEFUL.implementation(role)(*arrays, S0)
    arrays[6] = 0 * arrays[6]
    y, same = MAMBA2_SCAN_STATEFUL.implementation(role)(*arrays, S0)
    assert np.array_equal(same, S)
    assert not y.any()


@each_role
@each_type
def test_steps_one_after_another_are_the_scan(role, dtype):
    *arrays, S = drawn(MAMBA2_SCAN_STATEFUL, 7, dtype, BATCH)
    x, dt, A, B, C, D, z, dt_bias = arrays
    step, y, state = MAMBA2_STEP.implementation(role), [], S
    for t in range(7):
        now = x[..., t, :], dt[..., t], A, B[..., t, :], C[..., t, :], D, z[..., t, :], dt_bias
        y_t, state = step(*now, state, **LIMITS)
        y.append(y_t)
    decoded = np.stack(y, axis=-2), state
    verdict = judge(MAMBA2_SCAN_STATEFUL, lambda *_, **__: decoded, *arrays, S, **LIMITS)
    assert verdict.grade == "A"


@each_role
def test_a_reset_forgets_the_state_and_nothing_else(role):
    *arrays, _ = drawn(MAMBA2_SCAN_PACKED, 8, batch=BATCH)
    resets = np.arange(7) == 3
    y = MAMBA2_SCAN_PACKED.implementation(role)(*arrays, resets, **LIMITS)
    alone = MAMBA2_SCAN.implementation(role)
    for window in (slice(0, 3), slice(3, 7)):
        cut = [
            a[..., window, :] if "l" in d and len(d) == 2 else a[..., window] if d == ("l",) else a
            for a, d in zip(arrays, MAMBA2_SCAN.input_dims, strict=True)
        ]
        np.testing.assert_allclose(alone(*cut, **LIMITS), y[..., window, :], rtol=1e-12)


@each_role
def test_padding_is_minus_infinity_without_a_lower_limit(role):
    arrays = drawn(MAMBA2_SCAN_STATEFUL, 9)
    arrays[1][5:] = -np.inf
    _, S = MAMBA2_SCAN_STATEFUL.implementation(role)(*arrays)
    cut = [a[:5] if "l" in d else a for a, d in
           zip(arrays, MAMBA2_SCAN_STATEFUL.input_dims, strict=True)]  # fmt: skip
    np.testing.assert_allclose(S, MAMBA2_SCAN_STATEFUL.implementation(role)(*cut)[1], rtol=1e-14)
    _, other = MAMBA2_SCAN_STATEFUL.implementation(role)(*arrays, dt_min=0.25)
    assert not np.allclose(S, other)


@each_role
@pytest.mark.parametrize("l", [0, 1, 2, 9])
def test_any_length_is_right_and_none_gives_nothing(role, l):
    arrays = drawn(MAMBA2_SCAN_STATEFUL, 10, batch=BATCH, l=l)
    scan = MAMBA2_SCAN_STATEFUL.implementation(role)
    assert judge(MAMBA2_SCAN_STATEFUL, scan, *arrays, **LIMITS).grade == "A"
    y, S = scan(*arrays)
    assert (y.shape, S.shape) == ((2, 2, 3, l, 2), (2, 2, 3, 2, 3))
    gradients = MAMBA2_SCAN_STATEFUL.vjp(role)(y, S, *arrays)
    assert [g.shape for g in gradients] == [a.shape for a in arrays]


@each_role
def test_arguments_that_lack_axes_of_others_broadcast_and_gradients_are_sums(role):
    arrays = drawn(MAMBA2_SCAN_STATEFUL, 11, batch={"b": 1, "g": 1, "h": 1}, l=9)
    full = [np.broadcast_to(a, (2, 2, 3, *a.shape[a.ndim - len(d) :]))
            for a, d in zip(arrays, MAMBA2_SCAN_STATEFUL.input_dims, strict=True)]  # fmt: skip
    for i in range(len(arrays)):  # each alone has all axes
        given = [full[j] if j == i else a for j, a in enumerate(arrays)]
        outputs = several(MAMBA2_SCAN_STATEFUL.implementation(role)(*given, **LIMITS))
        wanted = several(MAMBA2_SCAN_STATEFUL.implementation(role)(*full, **LIMITS))
        for one, other in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        cotangents = [np.ones_like(y) for y in outputs]
        back = MAMBA2_SCAN_STATEFUL.vjp(role)
        gradients = back(*cotangents, *given, **LIMITS)
        whole = back(*cotangents, *(a.copy() for a in full), **LIMITS)
        for g, w, a in zip(gradients, whole, given, strict=True):
            if a.shape != w.shape:
                axes = tuple(range(3))
                w = w.sum(axes).reshape(a.shape)
            np.testing.assert_allclose(g, w, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"dt_min": -0.1}, "mamba2_scan: `dt_min` must be a number from 0 to dt_max, got -0.1"),
        ({"dt_min": 2.0, "dt_max": 1.0}, "`dt_min` must be a number from 0 to dt_max, got 2.0"),
        ({"dt_max": np.nan}, "`dt_max` must be a number from 0 to infinity, got nan"),
        ({"dt_max": -1.0}, "got"),
        ({"dt_min": True}, "got True"),
        ({"dt_max": "1"}, "`dt_max` must be a number from 0 to infinity, got '1'"),
    ],
    ids=str,
)
def test_limits_that_are_none_are_refused(limits, told):
    arrays = usual(MAMBA2_SCAN, 12)
    with pytest.raises(ValueError, match=re.escape(told)):
        refssm.mamba2_scan(*arrays, **limits)


def test_complex_arguments_are_refused():
    arrays = usual(MAMBA2_SCAN, 13)
    with pytest.raises(TypeError, match="mamba2_scan: `C` has dtype complex128, wanted a real"):
        refssm.mamba2_scan(*arrays[:4], arrays[4] + 1j, *arrays[5:])


def test_beside_a_limit_both_gradients_are_accepted_and_elsewhere_one():
    arrays = [a.astype("float32") for a in usual(MAMBA2_STEP, 14)]
    dt_max = 0.125
    v = np.float32(np.log(np.expm1(dt_max)))  # softplus(v) is the limit, up to a few roundings
    arrays[1], arrays[7] = np.float32(v), np.float32(0)
    cotangents = np.ones(2, "float32"), np.ones((2, 3), "float32")
    for dt, both in ((v, True), (v * np.float32(1.01), False), (v * np.float32(0.99), False)):
        arrays[1] = np.float32(dt)
        given = [*cotangents, *map(np.asarray, arrays)]
        told = expect(MAMBA2_STEP, given, {"dt_min": 0.0, "dt_max": dt_max}, MAMBA2_STEP.bare_vjp)
        free = MAMBA2_STEP.bare_vjp(*given, dt_min=0.0, dt_max=np.inf)[1]
        zero = np.zeros_like(free)
        accepted = [compare(np.asarray(g), told[1], np.dtype("float32")).ok for g in (free, zero)]
        assert accepted.count(True) == (2 if both else 1), dt


def test_a_minimum_counts_the_operand_that_an_error_may_choose():
    x, unit = np.array([1.0, 1 + 2.0**-23, 1.5]), 2.0**-24

    def program(x):
        return np.minimum(x * 1.0 * 1.0 * 1.0 * 1.0, 1.0) - 1.0  # four roundings, and the limit

    (gauge,) = gauges(program, x, unit=unit)
    # at the limit all of the error, two roundings beyond it what is left of it, far beyond nothing
    assert gauge.k0.round(3).tolist() == [4, 2, 0]


def test_by_the_recurrence_packed_and_whole_have_one_gradient():
    *arrays, _ = drawn(MAMBA2_SCAN_PACKED, 15, batch=BATCH)
    no = np.zeros(7, bool)
    dy = np.cos(np.arange(168.0)).reshape(2, 2, 3, 7, 2)
    packed = MAMBA2_SCAN_PACKED.vjp()(dy, *arrays, no, **LIMITS)
    whole = MAMBA2_SCAN.vjp()(dy, *arrays, **LIMITS)
    assert packed[-1] is None
    assert all(map(np.array_equal, packed[:-1], whole))


def test_a_function_without_the_limits_is_judged_at_their_defaults_and_a_note_says_so():
    def without(x, dt, A, B, C, D, z, dt_bias):
        return refssm.mamba2_scan(x, dt, A, B, C, D, z, dt_bias)

    how = {"types": ("float32",), "profile": "quick"}
    (result,) = judged("mamba2_scan", without, "value", **how)
    assert result.verdict == "pass"
    note = "mamba2_scan is judged without `dt_min`, `dt_max`, which the function does not take"
    assert note in result.notes

    def with_another_limit(x, dt, A, B, C, D, z, dt_bias):
        return refssm.mamba2_scan(x, dt, A, B, C, D, z, dt_bias, dt_min=0.5)

    (result,) = judged("mamba2_scan", with_another_limit, "value", **how)
    assert result.verdict == "wrong"


@pytest.mark.parametrize("op", [MAMBA2_SCAN, MAMBA2_STEP], ids=str)
def test_limits_of_steps_that_are_rounded_to_16_bits_are_refused(op):
    def rounded(*arrays, dt_min, dt_max):
        limits = {"dt_min": rounded_to(8, np.float64(dt_min))}
        limits |= {"dt_max": rounded_to(8, np.float64(dt_max))}
        return op.reference(*arrays, **{n: float(x) for n, x in limits.items()})

    line, *_ = judged(op.name, rounded, "value")
    assert line.failed
