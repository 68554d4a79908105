import numpy as np

import refssm
from refssm import initial
from refssm.layers._parts import bank
from refssm.layers.lru import LRU_LAYER

U = 2.0**-53


def test_its_parameters_are_those_of_the_paper():
    h, n = 128, 64
    theirs = 3 * n + 2 * n * h + 2 * h * n + h  # ν, θ, γ; B; C; D [orvieto2023lru, App. A]
    p = LRU_LAYER.init(np.random.default_rng(0), h=h, n=n)
    ours = sum(a.size * (2 if np.iscomplexobj(a) else 1) for a in p.arrays().values())
    assert ours == theirs + 2 * h * (h + 1) == 66112


def test_its_poles_lie_on_the_ring_that_is_asked_for():
    p = LRU_LAYER.init(np.random.default_rng(0), h=1, n=512, r_min=0.9, r_max=0.99, max_phase=0.5)
    modulus, phase = np.exp(-np.exp(p.log_rate)), np.exp(p.log_phase)
    assert 0.9 * (1 - 8 * U) <= modulus.min() <= modulus.max() <= 0.99 * (1 + 8 * U)
    assert phase.max() <= 0.5 * (1 + 8 * U)
    # γ² = 1 − |a|²: at |a| = 0.99 the difference has 1/0.0199 times the error of |a|²
    assert np.abs(np.exp(2 * p.log_gamma) / (1 - modulus**2) - 1).max() <= 16 * 51 * U


def test_its_logs_give_the_poles_that_are_drawn_over_the_whole_circle():
    p = LRU_LAYER.init(np.random.default_rng(0), h=1, n=64)
    drawn = initial.lru(np.random.default_rng(0), n=64, m=1, p=1)["a"]
    assert (drawn.imag < 0).any()  # a phase above π
    a = np.exp(-np.exp(p.log_rate) + 1j * np.exp(p.log_phase))
    # log and exp of a phase below 2π: four roundings each, times 2π
    assert np.abs(a - drawn).max() <= 2 * np.pi * 16 * U


def test_one_state_is_a_recurrence_written_out():
    """x_k = a x_{k−1} + γ b u_k, y_k = Re(c x_k) + d u_k, in Python's complex numbers."""
    p = LRU_LAYER.init(np.random.default_rng(0), h=1, n=1)
    u = np.random.default_rng(1).standard_normal((6, 1))
    a = complex(np.exp(-np.exp(p.log_rate[0]) + 1j * np.exp(p.log_phase[0])))
    b, c, d = complex(np.exp(p.log_gamma[0]) * p.B[0, 0]), complex(p.C[0, 0]), float(p.D[0])
    x, y = 0j, []
    for v in u[:, 0].tolist():
        x = a * x + b * v
        y.append((c * x).real + d * v)
    wanted = bank.mixed(refssm, p, np.array(y)[:, None])
    got = LRU_LAYER.forward(refssm, p, u)
    size = (abs(b * c) + abs(d)) * np.abs(u).sum()
    assert np.abs(got - wanted).max() <= 64 * U * size * (1 + np.abs(p.W).sum())


def test_it_starts_with_outputs_as_large_as_its_inputs():
    """White noise gives states of E|x|² = 1 and Re(C x) of variance 1: what γ and 2/n are for."""
    rng = np.random.default_rng(0)
    p = LRU_LAYER.init(rng, h=32, n=256, r_max=0.9)
    u = rng.standard_normal((2048, 32))
    a = np.exp(-np.exp(p.log_rate) + 1j * np.exp(p.log_phase))
    B = np.exp(p.log_gamma)[:, None] * p.B
    y = refssm.diagonal_ssm_real(a, B, p.C / 2, np.zeros((32, 32)), u)
    # 32 outputs of 256 random states: the variance has a standard deviation of about √(2/256)
    assert abs(y[100:].var() - 1) <= 5 * np.sqrt(2 / 256)
