from dataclasses import replace

import numpy as np

import refssm
from refssm.layers.diagonal.liquid_s4 import LIQUID_S4_LAYER as LAYER
from refssm.layers.s4d_bilinear import S4D_BILINEAR_LAYER, S4DBilinear

U = 2.0**-53
H, N, L = 2, 3, 9


def drawn():
    """Steps of 0.3 and an input that count: B̄² is not small."""
    rng = np.random.default_rng(0)
    p = LAYER.init(rng, h=H, n=N)
    B = rng.standard_normal((H, N)) + 1j * rng.standard_normal((H, N))
    return replace(p, log_dt=np.full(H, np.log(0.3)), B=4 * B)


def signal(*steps):
    """Normal numbers at these steps, 0 at all others."""
    u = np.zeros((L, H))
    u[[*steps]] = np.random.default_rng(1).standard_normal((len(steps), H))
    return u


def system(p):
    """a and B̄ (h, n)."""
    w = -np.exp(p.log_rate) + 1j * p.frequency
    half = np.exp(p.log_dt)[:, None] / 2
    return (1 + half * w) / (1 - half * w), 2 * half * p.B / (1 - half * w)


def mixed(p, y):
    first, second = np.split(refssm.gelu(y) @ p.W + p.b, 2, axis=-1)
    return first * refssm.sigmoid(second)


def recurrence(p, u):
    """The whole liquid recurrence x_k = (a + B̄ u_k) x_{k−1} + B̄ u_k, with all degrees."""
    (a, B), x, y = system(p), np.zeros((H, N), complex), []
    for row in u:
        now = row[:, None]
        x = (a + B * now) * x + B * now
        y.append(2 * (p.C * x).sum(-1).real + p.D * row)
    return mixed(p, np.array(y))


def bound(p, u):
    """Kernels of about 30 roundings of their terms, transforms of 20 of their norms; the slope of
    the gate is below |W| + 1; |a| < 1."""
    inputs = np.abs(system(p)[1]).max() * np.abs(u).sum()
    size = 2 * np.abs(p.C).sum() * inputs * (1 + inputs) + np.abs(p.D * u).max() + 1
    return 64 * U * size * (1 + np.abs(p.W).sum())


def test_without_neighbours_it_is_s4d_under_the_bilinear_map_with_c_times_b():
    p, u = drawn(), signal(0, 2, 5, 7)
    same = S4DBilinear(p.log_dt, p.log_rate, p.frequency, p.C * p.B, p.D, p.W, p.b)
    found, wanted = LAYER.forward(refssm, p, u), S4D_BILINEAR_LAYER.forward(refssm, same, u)
    assert np.abs(found - wanted).max() <= bound(p, u)


def test_for_two_neighbours_it_is_the_whole_liquid_recurrence():
    """Two inputs have no term of degree 3, and their product is that of neighbours."""
    p, u = drawn(), signal(3, 4)
    assert np.abs(LAYER.forward(refssm, p, u) - recurrence(p, u)).max() <= bound(p, u)


def test_two_inputs_that_are_apart_have_a_product_in_the_recurrence_and_none_here():
    p, u = drawn(), signal(2, 5)
    apart = np.abs(LAYER.forward(refssm, p, u) - recurrence(p, u)).max(axis=-1)
    assert (apart[:5] <= bound(p, u)).all()
    assert (apart[5:] > bound(p, u)).all()


def test_the_term_of_two_impulses_is_twice_the_real_part_of_c_b_squared_a_to_the_k():
    """By the kernel: u_3 = 2 and u_4 = 5 give 10 K²_{k−4} from step 4 on."""
    p = drawn()
    a, B = system(p)
    q = LAYER.prepared(refssm, p, L)[0]
    wanted = [2 * (p.C * B**2 * a**k).sum(-1).real for k in range(L)]
    size = 2 * np.abs(p.C * B**2).sum(-1)
    assert (np.abs(q.products - np.transpose(wanted)) <= (16 + 8 * L) * U * size[:, None]).all()


def test_the_first_output_knows_no_later_input():
    """The published code convolves the products in reversed time: its first output has the last."""
    p, u = drawn(), signal(*range(L))
    later = u.copy()
    later[1:] = 0
    one, two = (LAYER.forward(refssm, p, x)[0] for x in (u, later))
    assert np.abs(one - two).max() <= 2 * bound(p, u)


def test_its_second_state_is_the_last_input():
    p, u = drawn(), signal(*range(L))
    _, (x, s) = LAYER.stateful(refssm, p, u, LAYER.rest(p))
    assert x.shape == (H, N)
    assert np.array_equal(s, u[-1])


def test_a_piece_multiplies_its_first_input_with_the_last_one_before():
    p, u = drawn(), signal(3, 4)
    _, state = LAYER.stateful(refssm, p, u[:4], LAYER.rest(p))
    found, _ = LAYER.stateful(refssm, p, u[4:], state)
    lost, _ = LAYER.stateful(refssm, p, u[4:], (state[0], 0 * state[1]))
    wanted = recurrence(p, u)[4:]
    assert np.abs(found - wanted).max() <= bound(p, u)
    assert np.abs(lost - wanted).max() > bound(p, u)
