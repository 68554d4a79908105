"""Norms, linear maps, pooling and dropout: closed forms, and gradients against a complex step."""

import numpy as np
import pytest
from training.derivatives import UNIT, adjoint

import refssm
from refssm import norms as norms_
from refssm.layers._parts import mixing
from refssm.layers._parts.norms import NORMS, averaged

H = 6
u = UNIT
FORMS = {
    "linear": (mixing.linear, mixing.linear_vjp, 2, ((3, 5, H), (H, 4), (4,))),
    "layer_norm": (norms_.layer_norm, norms_.layer_norm_vjp, 2, ((3, 5, H), (H,), (H,))),
    "rms_norm": (norms_.rms_norm, norms_.rms_norm_vjp, 2, ((3, 5, H), (H,))),
    "batch_norm": (
        lambda *args: norms_.batch_norm(*args)[0], norms_.batch_norm_vjp, 2,
        ((3, 5, H), (H,), (H,)),
    ),
    "mean_pool": (mixing.mean_pool, lambda dy, x: (mixing.mean_pool_vjp(dy, x),), 1, ((3, 5, H),)),
}  # fmt: skip


def drawn(name, seed):
    """Form, VJP, arguments of the VJP, arrays, directions and a cotangent."""
    f, vjp, given, shapes = FORMS[name]
    rng = np.random.default_rng([seed, 7])
    xs, ts = ([rng.standard_normal(s) for s in shapes] for _ in range(2))
    return f, lambda dy, *xs: vjp(dy, *xs[:given]), xs, ts, rng.standard_normal(f(*xs).shape)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FORMS)
def test_each_gradient_is_the_adjoint_of_the_derivative(name, seed):
    f, vjp, xs, ts, dy = drawn(name, seed)
    left, right, size = adjoint(f, vjp, dy, xs, ts)
    assert abs(left - right) <= u * size


@pytest.mark.parametrize("name", FORMS)
def test_the_adjoint_identity_sees_a_gradient_that_is_slightly_wrong(name):
    f, vjp, xs, ts, dy = drawn(name, 0)
    left, right, size = adjoint(f, lambda *a: [g * (1 + 2.0**-40) for g in vjp(*a)], dy, xs, ts)
    assert abs(left - right) > u * size


@pytest.mark.parametrize("name", FORMS)
def test_float32_stays_float32_in_values_and_gradients(name):
    f, vjp, xs, _, dy = drawn(name, 0)
    xs = [x.astype(np.float32) for x in xs]
    assert f(*xs).dtype == np.float32
    assert {g.dtype for g in vjp(dy.astype(np.float32), *xs)} == {np.dtype(np.float32)}


def test_layer_norm_of_two_entries_is_plus_and_minus_one_but_for_epsilon():
    x = np.array([[5.0, 1.0], [-3.0, 4.5]])
    half = (x[:, 0] - x[:, 1]) / 2
    want = half / np.sqrt(half**2 + norms_.EPSILON)
    y = norms_.layer_norm(x, np.array([2.0, 2.0]), np.array([0.0, 1.0]))
    # mean, difference, two squares, mean, + ε, root, quotient, scale, shift: ten roundings of
    # numbers below 8
    assert np.abs(y[:, 0] - 2 * want).max() <= 10 * u * 8
    assert np.abs(y[:, 1] - (1 - 2 * want)).max() <= 10 * u * 8


def test_rms_norm_of_a_constant_is_its_sign_but_for_epsilon():
    y = norms_.rms_norm(np.full((2, 4), -3.0), np.ones(4))
    assert np.abs(y + 3 / np.sqrt(9 + norms_.EPSILON)).max() <= 6 * u


def test_batch_norm_sees_the_mean_and_the_unbiased_variance():
    x = np.array([[1.0], [3.0], [5.0], [7.0]])  # mean 4, squares 9 + 1 + 1 + 9
    norm = NORMS["batch"]
    y, seen = norm.forward(refssm, norm.init(1), x)
    assert seen["mean"].tolist() == [4.0]
    assert abs(seen["variance"][0] - 20 / 3) <= 4 * u * 20 / 3
    assert np.abs(y[:, 0] - np.array([-3, -1, 1, 3]) / np.sqrt(5 + norms_.EPSILON)).max() <= 16 * u


def test_averages_approach_what_every_batch_shows_by_a_tenth_a_step():
    a, seen = {"mean": np.zeros(1)}, {"mean": np.array([8.0])}
    for k in range(1, 30):
        a = averaged(a, seen)
        # a_k = 8 (1 − 0.9^k): three roundings a step, of numbers up to 8
        assert abs(a["mean"][0] - 8 * (1 - 0.9**k)) <= 3 * k * u * 8


def test_after_training_the_averages_stand_for_the_batch():
    norm, x = NORMS["batch"], np.random.default_rng(0).standard_normal((4, 3, H))
    p = {"scale": np.full(H, 2.0), "shift": np.full(H, -1.0)}
    averages = {"mean": np.full(H, 0.5), "variance": np.full(H, 4.0 - norms_.EPSILON)}
    want = (x - 0.5) - 1  # scale 2 over the root of 4
    assert np.abs(norm.fixed(refssm, p, averages, x) - want).max() <= 6 * u * np.abs(x).max() * 2


def test_one_batch_of_one_entry_has_no_variance_and_no_division_by_zero():
    _, seen = NORMS["batch"].forward(refssm, NORMS["batch"].init(2), np.array([[1.0, 2.0]]))
    assert seen["variance"].tolist() == [0.0, 0.0]


def test_norms_without_averages_see_nothing_and_stay_as_they_are():
    x = np.random.default_rng(1).standard_normal((2, 3, H))
    for name in ("layer", "rms"):
        norm = NORMS[name]
        y, seen = norm.forward(refssm, norm.init(H), x)
        assert seen == norm.averages(H) == {}
        assert (norm.fixed(refssm, norm.init(H), {}, x) == y).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dropout_keeps_a_share_and_the_mean(dtype):
    rate, shape = 0.25, (100, 1000)
    mask = mixing.dropout_mask(np.random.default_rng(0), shape, rate, dtype)
    assert mask.dtype == dtype
    assert {*np.unique(mask)} == {dtype(0), dtype(1) / dtype(0.75)}
    kept, n = (mask > 0).sum(), mask.size
    # the count is binomial: six standard deviations, a chance of 2e-9, for one fixed seed
    assert abs(kept - n * (1 - rate)) <= 6 * np.sqrt(n * rate * (1 - rate))


def test_dropout_of_rate_zero_keeps_everything():
    assert (mixing.dropout_mask(np.random.default_rng(0), (50, 50), 0.0, np.float32) == 1).all()


def test_batch_norm_is_that_of_pytorch():
    torch = pytest.importorskip("torch", reason="no PyTorch here: its BatchNorm is not compared")
    x = np.random.default_rng(3).standard_normal((8, 5, H))
    theirs, norm = torch.nn.BatchNorm1d(H, dtype=torch.float64), NORMS["batch"]
    want = theirs(torch.tensor(x).transpose(1, 2)).transpose(1, 2).detach().numpy()
    y, seen = norm.forward(refssm, norm.init(H), x)
    averages = averaged(norm.averages(H), seen)
    # means of 40 terms in another order: 40 roundings of numbers of size up to max|x|, twice
    bound = 80 * u * np.abs(x).max() ** 2
    assert np.abs(y - want).max() <= bound
    assert np.abs(averages["mean"] - theirs.running_mean.numpy()).max() <= bound
    assert np.abs(averages["variance"] - theirs.running_var.numpy()).max() <= bound
