import numpy as np
import pytest

import refssm
from refssm.linear_attention import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED

each_role = pytest.mark.parametrize("role", ["reference", "jit"])


@each_role
def test_gates_of_heads_are_those_of_keys_with_a_rate_each(role):
    rng = np.random.default_rng(0)
    a, b, A_log, dt_bias = rng.standard_normal((4, 7))
    log_g, beta = GATED_DELTA_GATES.implementation(role)(a, b, A_log, dt_bias)
    of_keys = KIMI_GATES.implementation(role)(a[:, None], A_log, dt_bias[:, None])
    assert np.array_equal(log_g, of_keys[:, 0])
    assert np.allclose(beta + GATED_DELTA_GATES.implementation(role)(a, -b, A_log, dt_bias)[1], 1)


@each_role
def test_the_rate_of_a_step_of_log_two_is_its_decay(role):
    log_g = KIMI_GATES.implementation(role)([0.0, 0.0], np.log(3.0), [0.0, 0.0])
    assert np.abs(log_g + 3 * np.log(2)).max() <= 2**-50


@each_role
def test_small_steps_keep_their_digits_in_single_precision(role):
    a = np.full(3, -25, np.float32)
    zero = np.zeros(3, np.float32)
    log_g = KIMI_GATES.implementation(role)(a, np.float32(0), zero)
    assert np.abs(log_g / -np.exp(-25.0) - 1).max() <= 2**-21


@each_role
def test_bounded_gates_stay_between_c_and_zero(role):
    a, zero = np.linspace(-200, 200, 9), np.zeros(9)
    run = KIMI_GATES_BOUNDED.implementation(role)
    log_g = run(a, np.log(16.0), zero, c=-2.0)
    assert log_g.min() == -2
    assert log_g.max() <= 0
    assert np.array_equal(run(a, 0.0, zero), run(a, 0.0, zero, c=-5.0))


@each_role
def test_outputs_have_all_leading_axes(role):
    log_g, beta = GATED_DELTA_GATES.implementation(role)(
        np.zeros((2, 1, 3)), np.zeros((4, 3)), np.zeros(3), np.zeros(3)
    )
    assert log_g.shape == beta.shape == (2, 4, 3)


@pytest.mark.parametrize("c", [0.0, 1.0, np.nan])
def test_a_bound_that_is_not_below_zero_is_refused(c):
    with pytest.raises(ValueError, match="kimi_gates_bounded: `c` must be a number below 0"):
        refssm.kimi_gates_bounded([1.0], 0.0, [0.0], c=c)


def test_complex_gates_are_refused():
    with pytest.raises(TypeError):
        refssm.kimi_gates([1j], 0.0, [0.0])
