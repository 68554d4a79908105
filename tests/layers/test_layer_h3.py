from dataclasses import replace

import numpy as np
import pytest

import refssm
from refssm.layers.gated.h3 import H3_LAYER

U = 2.0**-53


def started(h=3, **sizes):
    return H3_LAYER.init(np.random.default_rng(0), h=h, **sizes)


def signal(l=7, h=3):
    return np.random.default_rng(1).standard_normal((l, h))


def adding(p):
    """Its diagonal systems are exact sums of what is stored: poles of 0, steps of 1, C = ½."""
    zero = 0 * p.log_rate
    return replace(
        p, log_dt=0 * p.log_dt, log_rate=zero - 1e4, frequency=zero, C=zero + 0.5 / zero.shape[-1],
        D=0 * p.D,
    )  # fmt: skip


def delayed(p, by):
    """The shift gives the key of `by` steps before."""
    taps = np.zeros_like(p.C_shift)
    taps[..., by] = 1
    return replace(p, C_shift=taps, D_shift=0 * p.D_shift)


def test_its_parameters_are_those_of_the_published_layer_without_biases_and_input_vectors():
    h, t, n = 128, 64, 32
    shift, diagonal = h * t + h, h + 4 * h * n + h  # C and D; log dt, poles, C and D
    numbers = sum(a.size * (1 + np.iscomplexobj(a)) for a in started(h).arrays().values())
    assert numbers == 4 * h * h + shift + diagonal == 90496


def test_it_starts_as_its_published_code():
    """The taps as a framework's convolution of 64 taps, the poles of S4D-Lin, normal skips."""
    p = started(64)
    assert 0.12 < np.abs(p.C_shift).max() <= 1 / 8
    assert np.array_equal(p.frequency[5], np.pi * np.arange(32))
    assert np.array_equal(p.log_rate, np.full((64, 32), np.log(0.5)))
    assert 1e-3 * (1 - 4 * U) <= np.exp(p.log_dt).min() < np.exp(p.log_dt).max() <= 0.1
    assert 0.5 < p.D.std() < 1.5
    assert 0.5 < p.D_shift.std() < 1.5


def test_with_taps_of_a_delta_and_heads_of_one_number_it_is_s4d_between_two_gates():
    p = delayed(started(n=4, t=3), 0)
    u = signal()
    q, k, v = ((u @ W[..., 0].T).T for W in (p.W_q, p.W_k, p.W_v))
    w, dt = -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)
    K = refssm.diagonal_kernel_zoh_real(w, np.ones_like(w), p.C, dt, l=7)
    y = refssm.causal_convolution_direct(k * v, K) + p.D[:, None] * k * v
    wanted = (q * y).T @ p.W_out[:, 0]
    size = (np.abs(q) * (np.abs(K).sum(-1) + np.abs(p.D))[:, None]).max() * np.abs(k * v).max()
    # seven steps of some ten roundings, four products of h numbers, and a transform of 14 numbers
    bound = 16 * 10 * U * size * np.abs(p.W_out).sum()
    assert np.abs(H3_LAYER.forward(refssm, p, u) - wanted).max() <= bound
    later = H3_LAYER.forward(refssm, delayed(p, 1), u)
    assert np.abs(later - wanted).max() > bound


@pytest.mark.parametrize("h", [3, 4])
def test_a_head_of_two_numbers_stores_their_four_products(h):
    """Written out; of an odd number of channels the last head has two numbers too."""
    p = started(h, n=2, p=2, t=3)
    u = signal(h=h)
    assert p.W_q.shape == (2, h, 2)
    w, dt = -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)
    wanted, size = np.zeros((7, h)), 0.0
    for head in range(2):
        q, k, v = (u @ W[head] for W in (p.W_q, p.W_k, p.W_v))
        taps = p.C_shift[head].copy()
        taps[:, 0] += p.D_shift[head]  # the skip is a part of the newest tap
        a, x = np.exp(dt[head] * w[head]), np.zeros((2, 2, 2), complex)
        for t in range(7):
            newest = k[max(0, t - 2) : t + 1][::-1]
            shifted = (taps[:, : len(newest)].T * newest).sum(0)
            stored = np.outer(shifted, v[t])
            x = a * x + np.expm1(dt[head] * w[head]) / w[head] * stored[..., None]
            y = 2 * (p.C[head] * x).real.sum(-1) + p.D[head] * stored
            wanted[t] += q[t] @ y @ p.W_out[head]
            size = max(size, np.abs(q).max() * np.abs(y).max() * np.abs(p.W_out).sum())
    # seven steps of some ten roundings, four products of h numbers, and a transform of 14 numbers
    got = H3_LAYER.forward(refssm, p, u)
    assert np.abs(got - wanted).max() <= 16 * 10 * U * size


def test_with_keys_of_the_step_before_and_sums_it_recalls_what_followed_a_symbol():
    """One head, symbols as unit vectors: the state counts how often j followed i, and the query i
    reads that row."""
    symbols = [0, 4, 1, 5, 2, 3, 1]
    p = delayed(adding(started(6, n=2, p=6, t=2)), 1)
    one = np.eye(6)[None]
    p = replace(p, W_q=one, W_k=one, W_v=one, W_out=one)
    y = H3_LAYER.forward(refssm, p, np.eye(6)[symbols])
    counts = np.zeros((6, 6))
    for t in range(7):
        if t:
            counts[symbols[t - 1], symbols[t]] += 1
        assert np.abs(y[t] - counts[symbols[t]]).max() <= 64 * U
    assert y[-1].argmax() == 5  # after 1 came 5


def test_heads_of_one_number_cannot_recall_that():
    """A product of single numbers is the same whichever symbols they belong to: in each head key
    and value must be of one coordinate, so a symbol recalls only itself."""
    symbols = [0, 4, 1, 5, 2, 3, 1]
    p = delayed(adding(started(6, n=2, t=2)), 1)
    one = np.eye(6)[:, :, None]
    p = replace(p, W_q=one, W_k=one, W_v=one, W_out=np.swapaxes(one, 1, 2))
    y = H3_LAYER.forward(refssm, p, np.eye(6)[symbols])
    assert np.abs(y).max() <= 64 * U  # no symbol followed itself


def test_its_first_state_has_the_last_keys():
    p = started(n=2, t=4)
    u = signal()
    state = H3_LAYER.rest(p)
    for piece in (u[:3], u[3:3], u[3:]):
        _, state = H3_LAYER.stateful(refssm, p, piece, state)
    keys = np.einsum("lh,ghp->gpl", u, p.W_k)
    assert np.abs(state[0] - keys[..., -4:]).max() <= 16 * U * np.abs(keys).max()


def test_it_knows_no_sampling_rate_though_it_has_steps():
    with pytest.raises(ValueError, match="the shift of H3 counts samples"):
        started().resampled(0.5)
