from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.layers.diagonal.s5_discrete import S5_DISCRETE_LAYER as LAYER
from refssm.layers.s5 import S5_LAYER

U = 2.0**-53
H, N, L = 2, 3, 8


def drawn(**options):
    p = LAYER.init(np.random.default_rng(0), h=H, n=N, **options)
    return p, np.random.default_rng(1).standard_normal((L, H))


def gated(p, y):
    g = refssm.gelu(y)
    return g * refssm.sigmoid(g @ p.W + p.b)


def bound(p, u):
    """Products of h and n terms in each of l steps, |a| ≤ 1; the slope of the gate is below
    2 (1 + |y|)(1 + |W|)."""
    x = np.abs(p.B).sum() * np.abs(u).sum()
    size = 2 * np.abs(p.C).sum() * x + np.abs(p.D * u).max() + 1
    return L * 8 * (N + H) * U * size * (1 + size) * (1 + np.abs(p.W).sum())


@pytest.mark.parametrize("poles", ["hippo-n", "antisymmetric", "random"])
def test_it_starts_as_s5(poles):
    p, u = drawn(poles=poles)
    other = S5_LAYER.init(np.random.default_rng(0), h=H, n=N, poles=poles)
    found, wanted = LAYER.forward(refssm, p, u), S5_LAYER.forward(refssm, other, u)
    assert np.abs(found - wanted).max() <= bound(p, u)


def test_it_has_the_numbers_of_s5_but_the_steps():
    def count(layer):
        p = layer.init(np.random.default_rng(0), h=128, n=32)
        return sum(a.size * (1 + np.iscomplexobj(a)) for a in p.arrays().values())

    assert count(S5_LAYER) - count(LAYER) == 32


def test_its_decays_start_inside_the_circle():
    """|e^{dt w}| = e^{−dt/2} for the poles of HiPPO-N, whose real part is −½."""
    p, other = drawn()[0], S5_LAYER.init(np.random.default_rng(0), h=H, n=N)
    wanted = np.exp(-0.5 * np.exp(other.log_dt))
    assert np.abs(np.abs(p.a) - wanted).max() <= 64 * U * np.abs(other.w).max()


def test_with_decays_of_zero_it_has_no_memory():
    p, u = drawn()
    p = replace(p, a=0 * p.a)
    wanted = gated(p, u @ (2 * (p.C @ p.B).real).T + p.D * u)
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_with_decays_of_one_it_adds_up():
    p, u = drawn()
    p = replace(p, a=np.ones_like(p.a))
    wanted = gated(p, np.cumsum(u, axis=0) @ (2 * (p.C @ p.B).real).T + p.D * u)
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_nothing_keeps_its_decays_inside_the_circle():
    """a = 2: the state after an impulse is 2^k, to the last bit."""
    p = drawn()[0]
    p = replace(p, a=np.full(N, 2 + 0j), B=np.ones((N, H)) + 0j)
    u = np.zeros((L, H))
    u[0, 0] = 1
    _, (x,) = LAYER.stateful(refssm, p, u, LAYER.rest(p))
    assert np.array_equal(x, np.full(N, 2.0 ** (L - 1) + 0j))


def test_it_knows_no_sampling_rate():
    with pytest.raises(ValueError, match="S5Discrete has no `log_dt`, so it knows no sampling"):
        drawn()[0].resampled(0.5)
