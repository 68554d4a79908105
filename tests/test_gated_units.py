import numpy as np
import pytest

import refssm
from refssm.conformance.judging.grading import judge
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED, UNSCALED_START

ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
OPERATORS = (*REAL_GATED.operators, *UNSCALED_START.operators, *MINIMAL_GATED.operators)
SCANS = [(op, role) for op in OPERATORS if op.leading == "l" for role in ROLES]
each_scan = pytest.mark.parametrize(("op", "role"), SCANS, ids=[f"{op}-{r}" for op, r in SCANS])


def usual(op, seed=0, batch=(2,), l=7, n=4, dtype="float64"):
    """Arguments as in a model."""
    rng = np.random.default_rng(seed)
    arrays = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        if name == "ends":
            arrays.append(np.array([0, l // 2, l]))
            continue
        sizes = {"l": l, "n": n, "m": 3}
        x = rng.standard_normal((*(() if name == "a_param" else batch), *(sizes[d] for d in dims)))
        x = 1 / (1 + np.exp(-x)) if name in ("r", "i") else x - 4 if name == "a_param" else x
        arrays.append(x < -0.5 if name == "resets" else x.astype(dtype))
    return arrays


@each_scan
@pytest.mark.parametrize("l", [0, 1, 2, 16, 17])
def test_any_length_is_right_and_none_gives_nothing(op, role, l):
    arrays = usual(op, l, l=l)
    assert judge(op, op.implementation(role), *arrays).grade == "A"
    assert op.implementation(role)(*arrays).shape == (2, l, 4)


@each_role
def test_an_open_gate_and_a_large_rate_forget_all_but_the_newest_input(role):
    u, one = np.arange(1.0, 5.0)[:, None], np.ones((4, 1))
    run = refssm.gated_units.RG_LRU.implementation(role)
    assert np.array_equal(run(u, one, one / 2, [1000.0]), u / 2)


@each_role
def test_inputs_of_variance_one_give_states_of_variance_one(role):
    # x_t = a x_{t-1} + √(1 − a²) u_t keeps a variance of 1, whatever a is: the reason for the root
    rng = np.random.default_rng(0)
    u, r = rng.standard_normal((20000, 500, 1)), np.full((500, 1), 0.3)
    x = refssm.gated_units.RG_LRU_FROM.implementation(role)(
        u, r, np.ones_like(r), [-3.0], rng.standard_normal((20000, 1))
    )
    assert abs(x[:, -1].var() - 1) < 5 * np.sqrt(2 / 20000)


@each_role
def test_a_decay_near_one_keeps_the_digits_of_its_root(role):
    # log a = −8 log(1 + e^-14) · 1e-3 = −6.7e-9: in single precision 1 − a·a is 0
    log_a = -8 * np.log1p(np.exp(-14.0)) * np.float32(1e-3).astype(float)
    arrays = [np.array([[v]], np.float32) for v in (1.0, 1e-3, 1.0)]
    x = refssm.gated_units.RG_LRU.implementation(role)(*arrays, np.array([-14.0], np.float32))
    wanted = np.sqrt(-np.expm1(2 * log_a))
    assert abs(x[0, 0] / wanted - 1) < 2**-20
    assert np.sqrt(1 - np.exp(np.float32(log_a)) ** 2) == 0


@each_role
def test_without_a_root_at_first_the_rest_is_the_scan_from_the_first_gated_input(role):
    u, r, i, a_param = usual(REAL_GATED.operators[0], l=9)
    x = UNSCALED_START.operators[0].implementation(role)(u, r, i, a_param)
    start = i[:, 0] * u[:, 0]
    rest = REAL_GATED.operators[1].implementation(role)(
        u[:, 1:], r[:, 1:], i[:, 1:], a_param, start
    )
    assert np.abs(x - np.concatenate([start[:, None], rest], axis=1)).max() < 2**-48


@each_role
def test_a_reset_begins_without_a_root_too(role):
    u, r, i, a_param = (x[0] if x.ndim > 1 else x for x in usual(REAL_GATED.operators[0], l=9))
    resets = np.arange(9) == 4
    packed = UNSCALED_START.operators[1].implementation(role)(u, r, i, a_param, resets)
    plain = UNSCALED_START.operators[0].implementation(role)
    for piece in (slice(0, 4), slice(4, 9)):
        alone = plain(u[piece], r[piece], i[piece], a_param)
        assert np.abs(packed[piece] - alone).max() < 2**-48


@each_role
def test_the_first_gate_has_no_gradient_without_a_root(role):
    op = UNSCALED_START.operators[0]
    arrays = usual(op, l=5)
    _, dr, _, _ = op.vjp(role)(np.ones((2, 5, 4)), *arrays)
    assert (dr[:, 0] == 0).all()
    assert (dr[:, 1:] != 0).all()


@each_role
def test_both_units_are_the_linear_scan_of_what_their_gates_make(role):
    u, r, i, a_param = usual(REAL_GATED.operators[0], 1)
    log_a = -8 * np.log1p(np.exp(a_param)) * r
    b = np.sqrt(1 - np.exp(2 * log_a)) * i * u
    x = REAL_GATED.operators[0].implementation(role)(u, r, i, a_param)
    assert np.abs(x - refssm.linear_scan(np.exp(log_a), b)).max() < 2**-40
    k, h = usual(MINIMAL_GATED.operators[0], 2)
    z, g = 1 / (1 + np.exp(-k)), np.where(h >= 0, h + 0.5, 1 / (1 + np.exp(-h)))
    x = MINIMAL_GATED.operators[0].implementation(role)(k, h)
    assert np.abs(x - refssm.linear_scan(1 - z, z * g)).max() < 2**-46


@each_role
def test_a_state_of_min_gru_stays_between_the_least_and_the_largest_candidate(role):
    k, h = usual(MINIMAL_GATED.operators[0], 3, l=200)
    g = np.where(h >= 0, h + 0.5, 1 / (1 + np.exp(-h)))
    x = MINIMAL_GATED.operators[1].implementation(role)(k, h, g[:, 0])
    assert (x <= np.maximum.accumulate(g, axis=1) * (1 + 2**-40)).all()
    assert (x >= np.minimum.accumulate(g, axis=1) * (1 - 2**-40)).all()


@each_role
def test_g_is_continuous_and_its_slope_at_zero_is_one(role):
    step = MINIMAL_GATED.operators[-1]
    below, at, above = (
        step.implementation(role)([1000.0], [h], [0.0])[0] for h in (-1e-9, 0.0, 1e-9)
    )
    assert at == 0.5
    assert 0 < at - below < 1e-9 < 1.1e-9 > above - at > 0
    assert step.vjp(role)([1.0], [1000.0], [0.0], [0.0])[1] == 1


@each_role
def test_a_closed_gate_leaves_digits_of_the_state(role):
    # 1 − σ(18) is 0 in single precision; σ(−18) is 1.5e-8
    x = MINIMAL_GATED.operators[1].implementation(role)(
        *(np.array(v, np.float32) for v in ([[18.0]], [[-80.0]], [1000.0]))
    )
    assert abs(x[0, 0] / (1000 / (1 + np.exp(18.0))) - 1) < 2**-20


def test_a_part_of_an_argument_that_does_not_fit_is_named():
    one = np.ones((2, 1))
    with pytest.raises(ValueError, match="rg_lru: `i` has l=3, but earlier arguments have l=2"):
        refssm.rg_lru(one, one, np.ones((3, 1)), [0.0])
    with pytest.raises(TypeError, match="min_gru"):
        refssm.min_gru(one, 1j * one)
