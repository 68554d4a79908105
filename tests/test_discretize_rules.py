"""Facts of the eight rules: special cases, SciPy's results, values by hand, orders, messages."""

from typing import Any

import numpy as np
import pytest
from scipy.signal import cont2discrete

import refssm
from refssm.catalog import OPERATORS
from refssm.conformance.judging.grading import judge

matrices: Any = cont2discrete  # SciPy does not say the type of its result
CATALOG = {op.name.removeprefix("discretize_"): op for op in OPERATORS}
RULES = ("zoh", "foh", "impulse", "mamba", "bilinear", "euler", "backward")
ORDER = {"zoh": 0, "foh": 0, "impulse": 0, "mamba": 0, "bilinear": 2, "euler": 1, "backward": 1}
SCIPYS = {"zoh": "zoh", "bilinear": "bilinear", "euler": "euler", "backward": "backward_diff"}


def run(rule, *arrays, **statics):
    return getattr(refssm, f"discretize_{rule}")(*arrays, **statics)


def right(rule, value, *arrays, **statics):
    """True if the judge accepts `value` as the output of the rule."""
    arrays = [np.asarray(a) for a in arrays]
    return judge(CATALOG[rule], lambda *_, **__: value, *arrays, **statics).ok


def system(n=4, m=2, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n)) - 3 * np.eye(n), rng.standard_normal((n, m))


@pytest.mark.parametrize("form", ["", "diagonal_"])
@pytest.mark.parametrize(("alpha", "rule"), [(0, "euler"), (0.5, "bilinear"), (1, "backward")])
def test_the_generalized_map_has_the_others_bit_for_bit(form, alpha, rule):
    A, B = system()
    arrays = (np.diag(A), B, np.full(4, 0.3)) if form else (A, B, 0.3)
    theirs, ours = run(f"{form}gbt", *arrays, alpha=alpha), run(f"{form}{rule}", *arrays)
    assert all(map(np.array_equal, theirs, ours))


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 1.0])
def test_scipys_generalized_map_is_this_one(alpha):
    A, B = system()
    A_d, B_d, *_ = matrices((A, B, A, 0 * B), 0.3, "gbt", alpha=alpha)
    assert right("gbt", (A_d, B_d), A, B, 0.3, alpha=alpha)


@pytest.mark.parametrize("rule", SCIPYS)
def test_scipys_matrices_are_these(rule):
    A, B = system()
    A_d, B_d, *_ = matrices((A, B, A, 0 * B), 0.3, SCIPYS[rule])
    assert right(rule, (A_d, B_d), A, B, 0.3)


def test_scipys_impulse_invariance_is_this_one_times_the_step():
    # SciPy's B is dt Ā B and its D is dt C B
    A, B = system()
    A_d, _, _, D_d, _ = matrices((A, B[:, :1], np.eye(4), 0 * B[:, :1]), 0.25, "impulse")
    assert right("impulse", (A_d, D_d / 0.25), A, B[:, :1], 0.25)


def test_scipys_first_order_hold_keeps_another_state():
    # the state x_k − B̄₀ u_k: SciPy's B is B̄₁ + Ā B̄₀ and its D is C B̄₀
    A, B = system()
    A_d, B_d, _, D_d, _ = matrices((A, B, np.eye(4), 0 * B), 0.3, "foh")
    assert right("foh", (A_d, D_d, B_d - A_d @ D_d), A, B, 0.3)


@pytest.mark.parametrize("rule", RULES)
def test_a_diagonal_matrix_is_discretized_as_its_diagonal(rule):
    w, B = np.array([-0.7, -3.0, -1e-9, 0.0, -40.0]), system(5)[1]
    A_bar, *held = run(f"diagonal_{rule}", w, B, np.full(5, 0.3))
    assert right(rule, (np.diag(A_bar), *held), np.diag(w), B, 0.3)
    assert right(rule, run(rule, np.diag(w), B, 0.3), np.diag(w), B, 0.3)


@pytest.mark.parametrize("dt", [0.25, 1.0, 8.0])
def test_a_ramp_through_integrators_is_exact_under_first_order_hold(dt):
    A_bar, B0_bar, B1_bar = run("foh", np.eye(2, k=1), [[0.0], [1.0]], dt)
    assert A_bar.tolist() == [[1, dt], [0, 1]]
    wanted = np.array([[dt**2 / 6], [dt / 2]]), np.array([[dt**2 / 3], [dt / 2]])
    assert right("foh", (A_bar, *wanted), np.eye(2, k=1), [[0.0], [1.0]], dt)
    assert right("foh", (A_bar, B0_bar, B1_bar), np.eye(2, k=1), [[0.0], [1.0]], dt)


@pytest.mark.parametrize("form", ["", "diagonal_"])
def test_both_ends_of_a_first_order_hold_together_are_a_held_input(form):
    A, B = system()
    arrays = (np.diag(A), B, np.full(4, 0.3)) if form else (A, B, np.asarray(0.3))
    A_bar, end, start = run(f"{form}foh", *arrays)
    assert right(f"{form}zoh", (A_bar, end + start), *arrays)


@pytest.mark.parametrize("z", [-100.0, -1.0, -1e-3, -1e-12, 0.0])
def test_first_order_hold_by_hand(z):
    mp = pytest.importorskip("mpmath").mp
    with mp.workdps(60):
        x = mp.mpf(z)
        phi1 = mp.expm1(x) / x if x else mp.one
        phi2 = (phi1 - 1) / x if x else mp.mpf("0.5")
        end, start = float(phi2), float(phi1 - phi2)
    value = np.exp([z]), np.array([[end]]), np.array([[start]])
    assert right("diagonal_foh", value, [z], [[1.0]], [1.0])
    assert right("diagonal_foh", run("diagonal_foh", [z], [[1.0]], [1.0]), [z], [[1.0]], [1.0])


def test_sampled_impulse_responses_are_the_continuous_one():
    w, C = np.array([-0.5 + 2j, -1.0]), np.array([1.0, -2.0])
    a, B = run("diagonal_impulse", w, [[1.0], [3.0]], [0.25, 0.25])
    kernel = [(C * a**k * B[:, 0]).sum() for k in range(9)]
    continuous = [(C * np.exp(w * 0.25 * k) * [1.0, 3.0]).sum() for k in range(9)]
    assert np.allclose(kernel, continuous, rtol=1e-14, atol=1e-15)


def test_mambas_input_is_eulers_and_its_decay_zero_order_holds():
    w, B, dt = np.array([-0.1, -1.0, -5.0]), np.ones((3, 1)), np.ones(3)
    a, held = run("diagonal_mamba", w, B, dt)
    assert np.array_equal(a, run("diagonal_zoh", w, B, dt)[0])
    assert np.array_equal(held, run("diagonal_euler", w, B, dt)[1])
    ratio = run("diagonal_zoh", w, B, dt)[1] / held
    assert ratio.ravel().round(2).tolist() == [0.95, 0.63, 0.2]


@pytest.mark.parametrize("rule", [rule for rule, order in ORDER.items() if order])
def test_halving_the_step_divides_the_error_by_the_order(rule):
    errors = []
    for dt in (2.0**-7, 2.0**-8):
        a, _ = run(f"diagonal_{rule}", [-1.0 + 2j], [[1.0]], [dt])
        errors.append(abs(a[0] - np.exp((-1 + 2j) * dt)))
    assert round(np.log2(errors[0] / errors[1])) == ORDER[rule] + 1


@pytest.mark.parametrize("alpha", [0.5, 0.75, 1.0])
def test_from_one_half_on_what_decays_stays_in_the_unit_disc(alpha):
    w = -np.logspace(-6, 6, 13)[:, None] + 1j * np.linspace(-1e3, 1e3, 7)
    a, _ = run("diagonal_gbt", w.ravel(), np.ones((w.size, 1)), np.ones(w.size), alpha=alpha)
    assert (np.abs(a) <= 1).all()
    explicit, _ = run("diagonal_gbt", [-5.0], [[1.0]], [1.0], alpha=0.25)
    assert abs(explicit[0]) > 1


@pytest.mark.parametrize("rule", RULES)
def test_a_step_for_each_time_gives_a_system_for_each_time(rule):
    (A, B), dt = system(), np.array([0.1, 0.5, 0.1])
    together = run(rule, A, B, dt)
    for k, h in enumerate(dt):
        assert right(rule, tuple(y[k] for y in together), A, B, h)


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan, "half", None, True])
def test_the_weight_is_a_number_from_0_to_1(alpha):
    with pytest.raises(
        ValueError, match="discretize_gbt: `alpha` must be a number from 0 to 1, got"
    ):
        run("gbt", *system(), 0.1, alpha=alpha)


@pytest.mark.parametrize(("rule", "told", "more"), [
    ("backward", "I − dt·A is singular at dt = 0.5", {}),
    ("gbt", "I − 0.25·dt·A is singular at dt = 2", {"alpha": 0.25}),
])  # fmt: skip
def test_a_singular_system_is_named_with_its_step(rule, told, more):
    dt = 0.5 if rule == "backward" else 2.0
    with pytest.raises(np.linalg.LinAlgError, match=f"discretize_{rule}: {told}"):
        run(rule, [[2.0]], [[1.0]], dt, **more)


def test_empty_systems_stay_empty():
    for rule in RULES:
        A_bar, *held = run(rule, np.ones((0, 0)), np.ones((0, 2)), 0.1)
        assert A_bar.shape == (0, 0)
        assert all(B_bar.shape == (0, 2) for B_bar in held)
        A_bar, *held = run(rule, -np.eye(2), np.ones((2, 0)), 0.1)
        assert all(B_bar.shape == (2, 0) for B_bar in held)
