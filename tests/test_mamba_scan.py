from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp
from selective import SATURATED, alone, each_role, each_type, exact, usual

from refssm.activations import sigmoid, silu, softplus
from refssm.conformance.gauges.gauge import gauges
from refssm.conformance.judging.expected import expect, unit_roundoff
from refssm.conformance.judging.grading import compare, judge
from refssm.conformance.judging.verdict import kind_of
from refssm.conformance.standard import C as ALLOWED
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
)

BATCH = {"b": 2, "d": 3}
MINIMUM = -1.2784645427610738  # the place of SiLU's minimum
SINGLE_OR_DOUBLE = pytest.mark.parametrize("dtype", ["float32", "float64"])
EXACTLY = {
    softplus: lambda v: mp.log1p(mp.exp(v)),
    sigmoid: lambda v: 1 / (1 + mp.exp(-v)),
    silu: lambda z: z / (1 + mp.exp(-z)),
}


def held(function, points, values):
    """True if `values` are those of one of Mamba's functions, within its own gauge."""
    info = np.finfo(points.dtype)
    (gauge,) = gauges(function, points, unit=info.eps / 2, floor=float(info.tiny))
    allowed = ALLOWED * info.eps / 2 * gauge.k0
    with mp.workdps(40):
        wanted = [EXACTLY[function](mp.mpf(float(v))) for v in points]
        error = [float(abs(float(x) - w)) for x, w in zip(values, wanted, strict=True)]
    return bool((error <= allowed).all()), gauge


def one_step(role, dtype, dt, z: np.ndarray | float = 0.0, D=0.0):
    """y and x of one step from rest with u = B = C = 1 and A = −1: x is softplus(dt)."""
    dt, z, D = np.broadcast_arrays(*(np.asarray(a, dtype) for a in (dt, z, D)))
    one = np.ones((*dt.shape, 1), dtype)
    step = MAMBA_STEP.implementation(role)
    return step(one[..., 0], dt, -one, one, one, D, z, 0 * dt, 0 * one)


@each_role
@SINGLE_OR_DOUBLE
def test_the_softplus_has_all_its_digits_in_both_tails(role, dtype):
    v = np.linspace(-30, 100, 521).astype(dtype)
    _, x = one_step(role, dtype, v)
    right, gauge = held(softplus, v, x[:, 0])
    assert right
    # e^−|v| 4, the logarithm 4, the sum 1: nine roundings of softplus
    assert (gauge.k0 < 10 * gauge.value).all()


def naive(u, dt, A, B, C, D, z, dt_bias):
    """Mamba's scan with log(1 + e^v)."""
    with np.errstate(all="ignore"):
        steps = np.log(1 + np.exp(dt + dt_bias[..., None]))
        return (SELECTIVE_SCAN.reference(u, steps, A, B, C) + D * u) * silu(z)


@pytest.mark.parametrize("v", [-20, -17, -12, -9, 89])
def test_a_softplus_by_its_formula_has_none_in_one_of_them(v):
    arrays = usual(MAMBA_SCAN, 1, "float32")
    arrays[1][:], arrays[5][...], arrays[7][...] = v, 0, 0
    assert judge(MAMBA_SCAN, MAMBA_SCAN.implementation("reference"), *arrays).grade == "A"
    assert not judge(MAMBA_SCAN, naive, *arrays).ok
    arrays[1][:] = 1  # where the mistake is invisible
    assert judge(MAMBA_SCAN, naive, *arrays).ok


@each_role
@SINGLE_OR_DOUBLE
def test_the_gate_is_the_silu_of_z_from_one_tail_to_the_other(role, dtype):
    z = np.append(np.linspace(-100, 100, 801), MINIMUM).astype(dtype)
    zero, one = np.zeros((802, 1), dtype), np.ones((802, 1), dtype)
    y, _ = MAMBA_STEP.implementation(role)(
        one[:, 0], zero[:, 0], -one, one, zero, one[:, 0], z, zero[:, 0], zero
    )
    assert held(silu, z, y)[0]
    assert y[-2] == 100
    assert y.argmin() == 801
    assert y[400] == z[400] == 0


@each_role
def test_a_gate_far_below_zero_shuts_without_nan(role):
    y, _ = one_step(role, "float64", 0.0, z=np.array([-50, -1e3, -1e300, 0]), D=1.0)
    assert (kind_of(y) == 0).all()
    assert (y[0] < 0, *(y[1:] == 0)) == (True, True, True, True)


@each_role
def test_where_softplus_and_silu_are_the_identity_everything_is_exact(role):
    u, dt, A, B, C, D, z, dt_bias = arrays = exact(MAMBA_SCAN, 2, batch=BATCH)
    assert min(dt.min(), z.min()) >= SATURATED
    s = SELECTIVE_SCAN.reference(u, dt + dt_bias[:, None], A, B, C)
    y = MAMBA_SCAN.implementation(role)(*arrays)
    assert np.array_equal(y, (s + D[:, None] * u) * z)


@each_role
def test_the_skip_is_added_before_the_gate(role):
    *_, D, z, _ = arrays = exact(MAMBA_SCAN, 3, batch=BATCH)
    D[:], z[..., 2] = 3, 0
    assert not MAMBA_SCAN.implementation(role)(*arrays)[..., 2].any()

    def added_after(u, dt, A, B, C, D, z, dt_bias):
        return MAMBA_SCAN.reference(u, dt, A, B, C, 0 * D, z, dt_bias) + D[:, None] * u

    assert not judge(MAMBA_SCAN, added_after, *arrays).ok


@each_role
@each_type
def test_the_bias_is_added_to_every_step_before_the_softplus(role, dtype):
    arrays = usual(MAMBA_SCAN, 4, dtype, BATCH)
    *rest, dt_bias = arrays
    rest[1] = rest[1] + dt_bias[:, None]
    scan = MAMBA_SCAN.implementation(role)
    assert np.array_equal(scan(*arrays), scan(*rest, 0 * dt_bias))
    assert judge(MAMBA_SCAN, scan, *arrays).grade == "A"


@each_role
def test_a_bias_of_an_inverse_softplus_starts_the_steps_where_mamba_has_them(role):
    dt = np.geomspace(1e-3, 0.1, 50)
    inverse = dt + np.log(-np.expm1(-dt))
    _, x = one_step(role, "float64", inverse)
    # softplus has slope below 1 here, so its argument's rounding adds less than u of it
    slack = unit_roundoff("float64") * (ALLOWED * 10 * dt + ALLOWED * abs(inverse))
    assert (abs(x[:, 0] - dt) <= slack).all()


@each_role
@each_type
def test_the_state_is_the_ungated_one(role, dtype):
    u, dt, A, B, C, D, z, dt_bias, x0 = arrays = usual(MAMBA_SCAN_STATEFUL, 5, dtype)
    _, x = MAMBA_SCAN_STATEFUL.implementation(role)(*arrays)
    z[:], D[...] = 0, 7
    closed, same = MAMBA_SCAN_STATEFUL.implementation(role)(*arrays)
    assert np.array_equal(same, x)
    assert not closed.any()
    s = SELECTIVE_SCAN_STATEFUL.reference(u, softplus(dt + dt_bias), A, B, C, x0)
    assert role != "reference" or np.array_equal(x, s[1])


@each_role
@each_type
def test_padding_is_minus_infinity_for_a_softplus_of_zero_is_not_zero(role, dtype):
    arrays = usual(MAMBA_SCAN_STATEFUL, 6, dtype, l=9)
    arrays[1][6:] = -np.inf
    y, x = MAMBA_SCAN_STATEFUL.implementation(role)(*arrays)
    short, last = alone(MAMBA_SCAN_STATEFUL, role, arrays, slice(0, 6))
    assert np.array_equal(x, last)
    assert np.array_equal(y[:6], short)
    gradients = MAMBA_SCAN_STATEFUL.vjp(role)(y, x, *arrays)
    assert not gradients[1][6:].any()
    assert all(np.isfinite(g).all() for g in gradients)
    arrays[1][6:] = 0  # the mistake: a step size of log 2
    assert not np.array_equal(MAMBA_SCAN_STATEFUL.implementation(role)(*arrays)[1], last)


@each_role
@each_type
def test_cut_at_any_step_with_the_state_carried_it_is_the_scan_in_one_piece(role, dtype):
    *arrays, x0 = usual(MAMBA_SCAN_STATEFUL, 7, dtype, BATCH)
    y, x = MAMBA_SCAN_STATEFUL.implementation(role)(*arrays, x0)
    for k in range(8):
        first, state = alone(MAMBA_SCAN_STATEFUL, role, (*arrays, x0), slice(0, k))
        second, last = alone(MAMBA_SCAN_STATEFUL, role, (*arrays, state), slice(k, None))
        assert np.array_equal(np.concatenate([first, second], axis=-1), y)
        assert np.array_equal(last, x)


@each_role
@each_type
def test_steps_one_after_another_are_the_scan(role, dtype):
    u, dt, A, B, C, D, z, dt_bias, x = arrays = usual(MAMBA_SCAN_STATEFUL, 8, dtype, BATCH)
    step, y = MAMBA_STEP.implementation(role), []
    for k in range(7):
        now = u[..., k], dt[..., k], A, B[..., k, :], C[..., k, :], D, z[..., k], dt_bias
        y_k, x = step(*now, x)
        y.append(y_k)
    decoded = np.stack(y, axis=-1), x
    assert judge(MAMBA_SCAN_STATEFUL, lambda *_: decoded, *arrays).grade == "A"


@each_role
def test_the_gradients_of_softplus_and_gate_are_those_of_their_formulas(role):
    v = np.linspace(-30, 100, 261)
    z = np.append(np.linspace(-100, 100, 260), MINIMUM)
    one = np.ones((261, 1))
    flat = one[:, 0]
    arrays = flat[:, None], v[:, None], -one, one[..., None], one[..., None], flat, z[:, None]
    arrays = *arrays, 0 * flat
    *_, ddt, dz, dbias = (MAMBA_SCAN.vjp(role)(one, *arrays)[i] for i in (1, 6, 7))
    gauge = expect(MAMBA_SCAN, [one, *arrays], vjp=MAMBA_SCAN.bare_vjp)
    with mp.workdps(40):
        exactly = [_slopes(*map(mp.mpf, pair)) for pair in zip(v, z, strict=True)]
    for got, i, column in ((ddt, 1, 0), (dz, 6, 1), (dbias, 7, 0)):
        wanted = np.array([float(row[column]) for row in exactly]).reshape(got.shape)
        assert compare(got, replace(gauge[i], value=wanted), np.dtype(float)).grade == "A"
    # down to e^−30: relative to the slope
    assert (gauge[1].k0 <= 64 * abs(gauge[1].value)).all()


def _slopes(v, z):
    """The derivatives of (softplus(v) + 1) silu(z)."""
    s, sigma = mp.log1p(mp.exp(v)) + 1, 1 / (1 + mp.exp(-z))
    return z * sigma / (1 + mp.exp(-v)), s * sigma * (1 + z / (1 + mp.exp(z)))


@each_role
def test_the_gradient_of_the_bias_is_the_sum_of_those_of_the_steps(role):
    arrays = exact(MAMBA_SCAN, 9, batch=BATCH)
    (dy,) = (np.round(3 * np.sin(np.arange(42.0))).reshape(2, 3, 7),)
    _, ddt, *_, dbias = MAMBA_SCAN.vjp(role)(dy, *arrays)
    assert np.array_equal(dbias, ddt.sum((0, 2)))


@each_role
def test_the_gradient_where_nothing_rounds_is_that_of_the_selective_scan(role):
    u, dt, A, B, C, D, z, dt_bias = arrays = exact(MAMBA_SCAN, 10, batch=BATCH)
    dy = np.round(3 * np.sin(np.arange(42.0))).reshape(2, 3, 7)
    ds, plain = dy * z, (u, dt + dt_bias[:, None], A, B, C)
    du, ddt, dA, dB, dC = SELECTIVE_SCAN.bare_vjp(ds, *plain)
    s = SELECTIVE_SCAN.reference(*plain) + D[:, None] * u
    wanted = du + D[:, None] * ds, ddt, dA, dB, dC, (u * ds).sum((0, 2)), s * dy
    gradients = MAMBA_SCAN.vjp(role)(dy, *arrays)[:-1]
    assert all(map(np.array_equal, gradients, wanted))
