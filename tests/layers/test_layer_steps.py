"""Steps of layers: their first values, and signals that are sampled at another rate."""

import numpy as np
import pytest
from layers.regular import regular

import refssm
from refssm.layers.catalog import LAYERS, NAMED

U = 2.0**-53
# how the error falls when dt does. u_k stands for the step before t_k, which makes the signal early
# by dt/2: order 1. HOPE's cascade is the bilinear map of its whole transfer function: order 2; but
# its kernel of the future begins one step late, which is order 1 again.
ORDERS = {
    "s4": 1, "s4d": 1, "s4d_bilinear": 1, "s5": 1, "s5_bidirectional": 1, "hope": 2,
    "hope_bidirectional": 1, "s5_irregular": 1, "dss_exp": 1, "dss_softmax": 1,
    "stable_ssm_exp": 1, "stable_ssm_softplus": 1, "stable_ssm_best": 1,
}  # fmt: skip
# the largest first step: that of published code, and 1 where rates start at most at 1
LARGEST = {name: 1.0 if name.startswith("stable_ssm") else 1e-1 for name in ORDERS}
SAMPLED = [pytest.param(regular(NAMED[name]), id=name) for name in ORDERS]
OTHERS = [layer for layer in LAYERS if layer.name not in ORDERS]


def started(layer, **options):
    return layer.init(np.random.default_rng(0), h=3, n=4, **options)


def steps_of(p):
    """All steps."""
    return np.concatenate([np.exp(a) for n, a in p.arrays().items() if n.startswith("log_dt")])


@pytest.mark.parametrize("layer", SAMPLED)
def test_the_first_steps_lie_between_their_bounds(layer):
    p = layer.init(np.random.default_rng(0), h=64, n=64, dt_min=0.25, dt_max=0.5)
    dt = steps_of(p)
    assert 0.25 * (1 - 4 * U) <= dt.min() < 0.26
    assert 0.49 < dt.max() <= 0.5 * (1 + 4 * U)


@pytest.mark.parametrize("layer", SAMPLED)
def test_the_usual_bounds_are_those_of_its_page_and_bounds_change_only_steps(layer):
    most = LARGEST[layer.name]
    usual, same = started(layer).arrays(), started(layer, dt_min=1e-3, dt_max=most).arrays()
    wide = started(layer, dt_min=1e-2, dt_max=2.0).arrays()
    for name, a in usual.items():
        assert np.array_equal(a, same[name])
        assert np.array_equal(a, wide[name]) != name.startswith("log_dt"), name


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.2, 0.1), (-1.0, 1.0), (0.1, np.inf)])
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(ValueError, match="wanted 0 < dt_min ≤ dt_max, got dt_min="):
        started(NAMED["s5"], dt_min=bounds[0], dt_max=bounds[1])


def changes(layer, changed):
    """What two halvings of the distance between samples change, one after the other, at the common
    times. `changed(p, factor)` are the parameters for the finer signal."""
    p = layer.init(np.random.default_rng(0), h=2, n=2, dt_min=0.01, dt_max=0.02)
    outputs = []
    for factor in (1, 2, 4):
        t = np.arange(64 * factor) / factor / 64
        wave = np.sin(np.pi * t) ** 4  # smooth, and 0 with its first derivatives at both ends
        u = np.stack([wave, wave * t], axis=-1)
        y = layer.forward(refssm, changed(p, 1 / factor), u)
        outputs.append(y[::factor])
    coarse, middle, fine = outputs
    return np.abs(middle - coarse).max(), np.abs(fine - middle).max()


@pytest.mark.parametrize("layer", SAMPLED)
def test_a_finer_signal_with_smaller_steps_gives_the_same_output_up_to_the_order(layer):
    """If y_dt = y + c dt^q + …, the differences of two halvings are as 2^q to 1."""
    first, second = changes(layer, lambda p, f: p.resampled(f))
    assert round(np.log2(first / second)) == ORDERS[layer.name]


@pytest.mark.parametrize("layer", SAMPLED)
def test_with_the_old_steps_a_finer_signal_gives_another_output(layer):
    """Not one that vanishes with dt: already the first halving changes it much more."""
    resampled, same = (changes(layer, c) for c in (lambda p, f: p.resampled(f), lambda p, f: p))
    assert same[0] > 4 * resampled[0]


@pytest.mark.parametrize("layer", SAMPLED)
def test_only_steps_change_and_back_is_back(layer):
    p = started(layer)
    other = p.resampled(3.0)
    assert np.abs(steps_of(other) / steps_of(p) - 3).max() <= 32 * U  # log dt is as large as 7
    for name, a in p.arrays().items():
        assert np.array_equal(a, other.arrays()[name]) != name.startswith("log_dt"), name
    back = other.resampled(1 / 3)
    assert np.abs(steps_of(back) / steps_of(p) - 1).max() <= 64 * U


def test_single_precision_stays_single():
    p = started(NAMED["hope"]).map(lambda a: a.astype(np.float32)).resampled(0.5)
    assert {a.dtype for a in p.arrays().values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("layer", OTHERS, ids=str)
def test_a_layer_that_goes_from_sample_to_sample_says_that_it_has_no_rate(layer):
    p = layer.init(np.random.default_rng(0), h=2)
    with pytest.raises(ValueError, match="so it knows no sampling rate"):
        p.resampled(0.5)


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_factor_that_is_not_positive_is_refused(factor):
    with pytest.raises(ValueError, match="`factor` must be a positive number"):
        started(NAMED["s5"]).resampled(factor)
