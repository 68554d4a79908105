import numpy as np
import pytest

import refssm
from refssm.conformance.gauges.recurrences.linoss import _identity, _next, _through_powers
from refssm.conformance.judging.grading import judge
from refssm.linoss import IM, IMEX, explicit, explicit_slopes, implicit, implicit_slopes

ROLES = ("reference", "jit")
each_role = pytest.mark.parametrize("role", ROLES)
SCANS = [(op, role) for r in (IM, IMEX) for op in r.operators[:3] for role in ROLES]
each_scan = pytest.mark.parametrize(("op", "role"), SCANS, ids=[f"{op}-{r}" for op, r in SCANS])
BOTH = pytest.mark.parametrize(
    ("rows_of", "slopes_of"),
    [(implicit, implicit_slopes), (explicit, explicit_slopes)],
    ids=["im", "imex"],
)


def usual(op, seed=0, l=7, n=4, m=2, p=3, dtype="complex128"):
    """Arguments as models start."""
    rng, sizes = np.random.default_rng(seed), {"l": l, "n": n, "m": m, "p": p, "2": 2}
    arrays = []
    for name, dims in zip(op.inputs, op.input_dims, strict=True):
        shape = [sizes[d] for d in dims]
        if name in ("A", "dt"):
            arrays.append(rng.uniform(0.1, 1, shape))
        elif name == "resets":
            arrays.append(rng.random((2, *shape)) < 0.3)
        else:
            x = rng.standard_normal(((2,) if name in ("u", "x0") else ()) + tuple(shape))
            turned = 1 if name == "u" or dtype == "float64" else np.exp(1j)
            arrays.append(x * turned)
    return arrays


@each_scan
@pytest.mark.parametrize("l", [0, 1, 2, 17])
def test_any_length_is_right_and_none_gives_nothing(op, role, l):
    arrays = usual(op, l, l=l)
    assert judge(op, op.implementation(role), *arrays).grade == "A"
    y = op.implementation(role)(*arrays)
    assert (y[0] if isinstance(y, tuple) else y).shape == (2, l, 3)


@each_role
def test_implicit_steps_lose_energy_and_explicit_ones_keep_their_quadratic_form(role):
    A, dt, x0 = np.array([0.7]), np.array([0.9]), np.array([[1.0], [0.5]])
    one, u = np.ones((1, 1)), np.zeros((1, 1))
    for recurrence, form in (
        (IM, lambda z, y: z * z + 0.7 * y * y),
        (IMEX, lambda z, y: z * z - 0.9 * 0.7 * z * y + 0.7 * y * y),
    ):
        step, x, found = recurrence.operators[3].implementation(role), x0, []
        for _ in range(40):
            found.append(form(x[0, 0], x[1, 0]))
            x = step(A, one, one, dt, u[0], x)[1]
        ratios = np.array(found[1:]) / found[:-1]
        wanted = 1 / (1 + 0.9 * 0.9 * 0.7) if recurrence is IM else 1
        assert np.abs(ratios - wanted).max() < 2**-44


@each_role
def test_a_third_of_a_turn_comes_back_after_six_explicit_steps(role):
    # dt² A = 1: the trace is 1, the eigenvalues are the sixth roots of 1
    one = np.ones((1, 1))
    u = np.eye(12, 1)
    y = IMEX.operators[0].implementation(role)([1.0], one, one, [1.0], u).ravel()
    assert np.array_equal(y, np.tile([1.0, 1.0, 0.0, -1.0, -1.0, 0.0], 2))


@each_role
def test_the_limit_of_stability_grows_with_the_number_of_steps(role):
    one = np.ones((1, 1))
    y = IMEX.operators[0].implementation(role)([4.0], one, one, [1.0], np.eye(50, 1)).ravel()
    assert np.array_equal(np.abs(y), np.arange(1.0, 51.0))


@each_role
def test_without_a_spring_both_are_two_sums(role):
    rng = np.random.default_rng(0)
    u, one = rng.integers(-9, 9, (20, 1)).astype(float), np.ones((1, 1))
    for recurrence in (IM, IMEX):
        y = recurrence.operators[0].implementation(role)([0.0], one, one, [0.5], u)
        assert np.array_equal(y, np.cumsum(np.cumsum(u, 0), 0) / 4)


@each_role
def test_steps_of_one_hundredth_follow_the_oscillation(role):
    # y'' = −y from y = 1: cos t, within O(dt)
    one, dt = np.ones((1, 1)), np.array([0.01])
    for recurrence in (IM, IMEX):
        y, _ = recurrence.operators[1].implementation(role)(
            [1.0], one, one, dt, np.zeros((300, 1)), [[0.0], [1.0]]
        )
        assert np.abs(y.ravel() - np.cos(0.01 * np.arange(1, 301))).max() < 0.02


@BOTH
def test_the_slopes_are_those_of_the_rows(rows_of, slopes_of):
    A, dt, h = np.array([0.3, 2.0]), np.array([0.7, 1.1]), 2.0**-20
    by_A, by_dt = slopes_of(A, dt)
    assert np.abs((rows_of(A + h, dt) - rows_of(A - h, dt)) / (2 * h) - by_A).max() < 1e-9
    assert np.abs((rows_of(A, dt + h) - rows_of(A, dt - h)) / (2 * h) - by_dt).max() < 1e-9


@BOTH
def test_the_error_rule_adds_the_errors_of_all_steps_of_a_sequence(rows_of, slopes_of):
    del slopes_of
    rng, l = np.random.default_rng(0), 60
    M = rows_of(rng.uniform(0, 4, 5), rng.uniform(0, 1, 5))[..., :4, :]
    rho, number = rng.random((l, 2, 5, 2)), np.cumsum(rng.random(l) < 0.1)
    found, wanted = _through_powers(M, rho, number), np.zeros_like(rho)
    for k in range(l):
        power = _identity(M)
        for j in range(k, -1, -1):
            if number[j] == number[k]:
                a, b, c, d = np.abs(power)[..., None]
                wanted[k] += np.stack(
                    [a * rho[j, 0] + b * rho[j, 1], c * rho[j, 0] + d * rho[j, 1]]
                )
            power = _next(M, power)
    assert (found >= wanted * (1 - 2**-40)).all()
    assert (found <= wanted * 1.2).all()


def test_moduli_of_the_matrix_would_explode_where_the_error_rule_does_not():
    M = explicit(np.array([2.0]), np.array([1.0]))[..., :4, :]
    rho = np.ones((300, 2, 1, 2))
    assert _through_powers(M, rho, np.zeros(300, int)).max() < 1000
    assert np.linalg.matrix_power(np.abs(M).reshape(2, 2), 299).max() > 1e100


def test_a_state_of_three_rows_is_refused_by_name():
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match="linoss_im_step: `x` has an axis of 3, wanted 2"):
        refssm.linoss_im_step([1.0], one, one, [1.0], [0.0], np.zeros((3, 1)))
