"""S5 compared with S4: one state for all channels, several inputs and outputs [smith2023s5, Prop.
2].
"""

import numpy as np
import pytest
from recurrences import each_role, integers, random

from refssm.conformance.judging.grading import judge
from refssm.convolution import causal_convolution_direct
from refssm.discretize import discretize_diagonal_bilinear, discretize_diagonal_zoh
from refssm.scan import DIAGONAL_SSM, LINEAR_SCAN
from refssm.vandermonde import vandermonde_kernel

each_method = pytest.mark.parametrize(
    "discretize", [discretize_diagonal_zoh, discretize_diagonal_bilinear], ids=["zoh", "bilinear"]
)


def states_of_the_bank(role, a, B, u):
    """The states x^(i) of m systems with one input each: a common a, column i of B, u^(i)."""
    scan = LINEAR_SCAN.implementation(role)
    decays = np.broadcast_to(a, (len(u), len(a)))
    return [scan(decays, B[:, i] * u[:, i, None]) for i in range(B.shape[1])]


@each_role
def test_the_state_is_the_sum_of_the_states_of_the_single_input_systems(role):
    a, B, C, u = integers(1, (4,), (4, 3), (2, 4), (9, 3), dtype="complex128")
    x = sum(states_of_the_bank(role, a, B, u))
    system = DIAGONAL_SSM.implementation(role)
    assert np.array_equal(system(a, B, np.eye(4), np.zeros((4, 3)), u), x)
    assert np.array_equal(system(a, B, C, np.zeros((2, 3)), u), x @ C.T)


@each_role
@each_method
def test_so_it_is_after_discretization_of_each_system_alone(role, discretize):
    n, m, l = 4, 3, 64
    w, B, C, u = random(2, (n,), (n, m), (2, n), (l, m), dtype="complex128")
    w, dt = -np.abs(w.real) + 3j * w.imag, np.full(n, 0.1)
    a, B_bar = discretize(w, B, dt)
    columns = [discretize(w, B[:, [i]], dt) for i in range(m)]
    assert all(np.array_equal(a, alone) for alone, _ in columns)
    assert np.array_equal(B_bar, np.hstack([column for _, column in columns]))
    y = sum(states_of_the_bank(role, a, B_bar, u)) @ C.T
    none = np.zeros((2, m))
    assert judge(DIAGONAL_SSM, lambda *_: y, a, B_bar, C, none, u).grade == "A"
    assert judge(DIAGONAL_SSM, DIAGONAL_SSM.implementation(role), a, B_bar, C, none, u).ok


@each_role
@each_method
def test_a_bank_with_its_own_outputs_is_a_block_diagonal_system(role, discretize):
    # S4 mixes its channels after the scan; with disjoint states, S5 contains the whole bank
    n, m, l = 2, 2, 12
    a, _ = discretize(np.array([-2.0, 0.0]), np.ones((n, 1)), np.ones(n))
    a = np.round(a * 4) / 4
    B, C, u = integers(3, (m, n), (m, n), (l, m))
    powers = a ** np.arange(l)[:, None]
    bank = [causal_convolution_direct(u[:, i], powers @ (C[i] * B[i])) for i in range(m)]
    wide_B, wide_C = np.zeros((m * n, m)), np.zeros((m, m * n))
    for i in range(m):
        wide_B[i * n : (i + 1) * n, i], wide_C[i, i * n : (i + 1) * n] = B[i], C[i]
    y = DIAGONAL_SSM.implementation(role)(np.tile(a, m), wide_B, wide_C, np.zeros((m, m)), u)
    assert np.array_equal(y, np.transpose(bank))


@each_role
@each_method
def test_each_pair_of_channels_has_the_kernel_of_s4d(role, discretize):
    w, B, C = random(4, (3,), (3, 2), (2, 3), dtype="complex128")
    w = -np.abs(w.real) + 2j * w.imag
    a, B_bar = discretize(w, B, np.full(3, 0.2))
    none = np.zeros((2, 2))
    for channel in range(2):
        u = np.eye(50, 1) * np.eye(2)[channel]
        kernel = vandermonde_kernel(C * B_bar[:, channel], np.log(a), l=50).T
        assert judge(DIAGONAL_SSM, lambda *_, k=kernel: k, a, B_bar, C, none, u).ok
        y = DIAGONAL_SSM.implementation(role)(a, B_bar, C, none, u)
        assert judge(DIAGONAL_SSM, lambda *_, y=y: y, a, B_bar, C, none, u).grade == "A"
