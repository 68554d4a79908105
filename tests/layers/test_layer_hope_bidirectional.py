import numpy as np

import refssm
from refssm.layers._parts import bank
from refssm.layers.hope import HOPE, HOPE_LAYER
from refssm.layers.hope_bidirectional import HOPE_BIDIRECTIONAL_LAYER as LAYER
from refssm.layers.hope_bidirectional import HOPEBidirectional

U = 2.0**-53
L = 9


def drawn(h=2, n=3, **other):
    p = LAYER.init(np.random.default_rng(0), h=h, n=n)
    u = np.random.default_rng(1).standard_normal((L, h))
    return HOPEBidirectional(**p.arrays() | other), u


def bound(p, u):
    """Transforms of about 20 roundings of their norm; the slope of the gate is below |W| + 1."""
    taps = np.abs(p.markov).sum() + np.abs(p.markov_future).sum()
    size = taps * np.abs(u).sum() + np.abs(p.D * u).max()
    return 64 * U * size * (1 + np.abs(p.W).sum())


def test_its_parameters_are_counted():
    """The published code draws 2h steps and 2h rows of parameters for h channels, too."""
    h, n = 128, 64
    p = LAYER.init(np.random.default_rng(0), h=h, n=n)
    count = sum(a.size for a in p.arrays().values())
    assert count == 2 * h * (1 + n) + h + 2 * h * (h + 1) == 49792


def test_without_a_future_it_is_hope():
    p, u = drawn(markov_future=np.zeros((2, 3)))
    one = HOPE(p.log_dt, p.markov, p.D, p.W, p.b)
    difference = LAYER.forward(refssm, p, u) - HOPE_LAYER.forward(refssm, one, u)
    assert np.abs(difference).max() <= bound(p, u)


def test_at_steps_of_one_it_is_a_filter_of_taps_on_both_sides():
    """The past from lag 1 on, the future from lag −2 on: its kernel begins at lag −1, with a 0."""
    p, u = drawn(h=1, log_dt=np.zeros(1), log_dt_future=np.zeros(1))
    # lags −4 to −2; −1 and 0, where the kernels are 0; 1 to 3
    taps = np.concatenate([p.markov_future[0, ::-1], [0.0, p.D[0]], p.markov[0]])
    y = np.convolve(taps, u[:, 0])[4 : 4 + L]
    wanted = bank.mixed(refssm, p, y[:, None])
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_the_present_input_meets_the_kernel_of_the_past_only():
    """An impulse at time 4: K_0 + D at its own time, K'_0 one step before."""
    p, _ = drawn(h=1)
    u = np.eye(L)[4][:, None]
    K, back = (
        refssm.hope_kernel(markov[0], np.exp(log_dt[0]), l=L)
        for markov, log_dt in ((p.markov, p.log_dt), (p.markov_future, p.log_dt_future))
    )
    assert abs(back[0]) > 0.1  # a wrong lag would be seen
    y = np.concatenate([back[:4][::-1], [K[0] + p.D[0]], K[1:5]])
    wanted = bank.mixed(refssm, p, y[:, None])
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_the_published_padding_of_s4_gives_the_same_convolution():
    """K padded at the end, K' reversed and padded at the beginning, each by l zeros, and transforms
    of 2l points: `FFTConv.forward` of state-spaces/s4 with bidirectional=True."""
    p, u = drawn()
    K = refssm.hope_kernel(p.markov, np.exp(p.log_dt), l=L)
    back = refssm.hope_kernel(p.markov_future, np.exp(p.log_dt_future), l=L)
    both = np.pad(K, [(0, 0), (0, L)]) + np.pad(back[:, ::-1], [(0, 0), (L, 0)])
    spectrum = np.fft.rfft(u.T, 2 * L) * np.fft.rfft(both)
    y = np.fft.irfft(spectrum, 2 * L)[:, :L] + p.D[:, None] * u.T
    wanted = bank.mixed(refssm, p, y.T)
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= bound(p, u)


def test_both_directions_are_drawn_independently():
    p, _ = drawn(h=4)
    assert not np.any(p.markov == p.markov_future)
    assert not np.any(p.log_dt == p.log_dt_future)
