from itertools import pairwise

import mpmath
import numpy as np

import refssm
from refssm.layers.s4 import S4, S4_LAYER
from refssm.layers.s4d import S4D_LAYER
from refssm.layers.s4d_bilinear import S4D_BILINEAR_LAYER as LAYER

U = 2.0**-53
H, N, L = 2, 3, 8


def drawn():
    p = LAYER.init(np.random.default_rng(0), h=H, n=N)
    return p, np.random.default_rng(1).standard_normal((L, H))


def bound(p, u):
    """A kernel of about 30 roundings of its terms, a transform of 20 of its norm; the slope of the
    gate is below |W| + 1. |Ā| < 1 and |dt/(1 − ½dt w)| < dt, since Re w < 0."""
    terms = 2 * (np.exp(p.log_dt) * np.abs(p.C).sum(-1)).max()
    size = terms * np.abs(u).sum() + np.abs(p.D * u).max() + 1
    return 64 * U * size * (1 + np.abs(p.W).sum())


def test_it_starts_as_s4d():
    p, other = drawn()[0], S4D_LAYER.init(np.random.default_rng(0), h=H, n=N)
    assert list(p.arrays()) == list(other.arrays())
    assert all(np.array_equal(a, other.arrays()[n]) for n, a in p.arrays().items())


def test_it_is_s4_without_a_low_rank_part():
    """S4 takes the real part where S4D takes it twice."""
    p, u = drawn()
    none, ones = np.zeros((H, N, 1), complex), np.ones((H, N), complex)
    same = S4(p.log_dt, p.log_rate, p.frequency, none, ones, 2 * p.C, p.D, p.W, p.b)
    difference = LAYER.forward(refssm, p, u) - S4_LAYER.forward(refssm, same, u)
    assert np.abs(difference).max() <= bound(p, u)
    other = S4D_LAYER.forward(refssm, p, u) - S4_LAYER.forward(refssm, same, u)
    assert np.abs(other).max() > bound(p, u)  # zero-order hold is another rule


def test_its_system_is_the_trapezoidal_rule_with_the_input_at_the_end_of_the_step():
    """x_k = x_{k−1} + ½dt w (x_k + x_{k−1}) + dt u_k, in 40 digits, for one mode."""
    p = LAYER.init(np.random.default_rng(0), h=1, n=1)
    u = np.random.default_rng(1).standard_normal((6, 1))
    with mpmath.workdps(40):
        dt, x, y = mpmath.exp(mpmath.mpf(p.log_dt[0])), mpmath.mpc(0), []
        w = mpmath.mpc(-mpmath.exp(p.log_rate[0, 0]), p.frequency[0, 0])
        for u_k in u[:, 0]:
            x = ((1 + dt * w / 2) * x + dt * mpmath.mpf(u_k)) / (1 - dt * w / 2)
            y.append(float(2 * (mpmath.mpc(p.C[0, 0]) * x).real + mpmath.mpf(p.D[0] * u_k)))
    first, second = np.split(refssm.gelu(np.array(y)[:, None]) @ p.W + p.b, 2, axis=-1)
    wanted = first * refssm.sigmoid(second)
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_it_tends_to_s4d_for_small_steps():
    """Their kernels differ by dt³ w²/12 + …, so half the step has an eighth of the difference."""
    p, u = drawn()
    p = type(p)(**p.arrays() | {"log_dt": np.full(H, -6.0)})
    apart = []
    for factor in (1.0, 0.5, 0.25):
        q = p.resampled(factor)
        apart.append(np.abs(LAYER.forward(refssm, q, u) - S4D_LAYER.forward(refssm, q, u)).max())
    assert [round(np.log2(a / b)) for a, b in pairwise(apart)] == [3, 3]
