import mpmath
import numpy as np
import pytest
from scipy.special import expit

import refssm
from refssm import initial
from refssm.activations import gelu
from refssm.layers.s4d import S4D_LAYER

U = 2.0**-53


def test_its_parameters_are_those_of_the_published_code():
    """S4D of state-spaces/s4 with d_model=128, d_state=64 has as many numbers."""
    h, n = 128, 32
    theirs = h + 2 * h * n + h * n + h * n + h + 2 * h * (h + 1)  # dt, C, A_real, A_imag, D, Conv1d
    p = S4D_LAYER.init(np.random.default_rng(0), h=h, n=n)
    ours = sum(a.size * (2 if np.iscomplexobj(a) else 1) for a in p.arrays().values())
    assert ours == theirs == 49664


@pytest.mark.parametrize("poles", ["lin", "inv", "quad", "real", "legs"])
def test_it_starts_with_the_poles_of_each_name(poles):
    p = S4D_LAYER.init(np.random.default_rng(0), h=2, n=4, poles=poles)
    w = initial.diagonal(poles, n=4)["w"]
    assert np.array_equal(p.frequency, np.stack([w.imag, w.imag]))
    assert np.abs(np.exp(p.log_rate) + w.real).max() <= 8 * U * np.abs(w.real).max()


def test_the_filter_is_the_sum_of_exponentials_of_the_paper():
    """y = K * u + D u with K_k = 2 Re Σ C (e^{dt w} − 1)/w e^{dt w k}, in 40 digits."""
    p = S4D_LAYER.init(np.random.default_rng(0), h=1, n=3)
    u = np.random.default_rng(1).standard_normal((6, 1))
    with mpmath.workdps(40):
        dt = mpmath.exp(mpmath.mpf(p.log_dt[0]))
        K, terms = [], mpmath.mpf(0)
        for k in range(6):
            sum_, size = mpmath.mpc(0), mpmath.mpf(0)
            for rate, frequency, C in zip(p.log_rate[0], p.frequency[0], p.C[0], strict=True):
                w = mpmath.mpf(frequency) * mpmath.mpc(0, 1) - mpmath.exp(mpmath.mpf(rate))
                term = mpmath.mpc(C) * mpmath.expm1(dt * w) / w * mpmath.exp(dt * w * k)
                sum_, size = sum_ + term, size + abs(term)
            K, terms = [*K, 2 * sum_.real], max(terms, size)
        y = [sum(K[j] * mpmath.mpf(u[k - j, 0]) for j in range(k + 1)) for k in range(6)]
        y = np.array([float(v + mpmath.mpf(p.D[0]) * mpmath.mpf(u[k, 0])) for k, v in enumerate(y)])
    mixed = gelu(y[:, None]) @ p.W + p.b
    wanted = mixed[:, :1] * expit(mixed[:, 1:])
    got = S4D_LAYER.forward(refssm, p, u)
    # the kernel has about 30 roundings of its terms, the transform 20 of its norm; the gate's slope
    # is below |W| + 1
    size = 2 * float(terms) * np.abs(u).sum() + np.abs(p.D * u).max() + 1
    assert np.abs(got - wanted).max() <= 64 * U * size * (1 + np.abs(p.W).sum())


def test_an_unknown_start_names_the_known_ones():
    with pytest.raises(ValueError, match="lin, inv, quad, real, legs, got 'x'"):
        S4D_LAYER.init(np.random.default_rng(0), h=1, poles="x")
