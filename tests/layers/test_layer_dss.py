from dataclasses import replace

import numpy as np

import refssm
from refssm.layers.diagonal.dss_exp import DSS_EXP_LAYER, DSSExp
from refssm.layers.diagonal.dss_softmax import DSS_SOFTMAX_LAYER
from refssm.layers.s4d import S4D, S4D_LAYER

U = 2.0**-53
H, N, L = 2, 3, 8


def drawn(layer):
    return layer.init(np.random.default_rng(0), h=H, n=N), signal()


def signal():
    return np.random.default_rng(1).standard_normal((L, H))


def bound(p, u, kernel):
    """A kernel of about 30 roundings of its terms, a transform of 20 of its norm; the slope of the
    gate is below |W| + 1."""
    size = np.abs(kernel).max() * np.abs(u).sum() + np.abs(p.D * u).max() + 1
    return 64 * U * size * (1 + np.abs(p.W).sum())


def of_softmax(p, l):
    return DSS_SOFTMAX_LAYER.prepared(refssm, p, l)[0].K


def test_both_start_from_the_eigenvalues_of_the_skew_part_of_hippo():
    """(G − Gᵀ)/2 − ½, G_ij = √((2i + 1)(2j + 1)) below its diagonal: those with Im w > 0."""
    n, rng = 4, np.random.default_rng(0)
    root = np.sqrt(2 * np.arange(2 * n) + 1.0)
    G = np.tril(np.outer(root, root), -1)
    wanted = np.sort(np.linalg.eigvalsh(1j * (G - G.T) / 2))[n:]
    one, two = (layer.init(rng, h=1, n=n) for layer in (DSS_EXP_LAYER, DSS_SOFTMAX_LAYER))
    size = 16 * 2 * n * U * np.linalg.norm(G)
    assert np.abs(np.sort(one.frequency) - wanted).max() <= size
    assert np.abs(np.sort(two.w.imag) - wanted).max() <= size
    assert np.abs(np.exp(one.log_rate) - 0.5).max() <= size
    assert np.abs(two.w.real + 0.5).max() <= size


def test_dss_exp_is_s4d_with_the_same_poles_in_all_channels_and_half_of_c():
    p, u = drawn(DSS_EXP_LAYER)
    shared = (np.broadcast_to(x, (H, N)).copy() for x in (p.log_rate, p.frequency))
    same = S4D(*[p.log_dt, *shared, p.C / 2, p.D, p.W, p.b])
    found, wanted = DSS_EXP_LAYER.forward(refssm, p, u), S4D_LAYER.forward(refssm, same, u)
    K = DSS_EXP_LAYER.prepared(refssm, p, L)[0].K
    assert np.abs(found - wanted).max() <= bound(p, u, np.abs(p.C).sum() + np.abs(K))


def test_its_kernel_for_one_real_mode_of_half_life_one_is_halved_each_step():
    """w = −log 2, dt = 1: K_k = C/(2 log 2) 2^{−k}."""
    p = drawn(DSS_EXP_LAYER)[0]
    one = np.array([np.log(np.log(2.0))])
    p = DSSExp(0 * p.log_dt, one, 0 * one, np.ones((H, 1), complex), p.D, p.W, p.b)
    K = DSS_EXP_LAYER.prepared(refssm, p, 4)[0].K
    wanted = 0.5 / np.log(2) * np.array([1, 0.5, 0.25, 0.125])
    assert np.abs(K - wanted).max() <= 16 * U


def test_softmax_is_exp_with_another_c_where_all_modes_decay():
    """(C/w) e^{zk}/Σ_r e^{zr} = C' (e^z − 1)/w e^{zk}, C' = C/(e^{lz} − 1)."""
    p, u = drawn(DSS_SOFTMAX_LAYER)
    z = np.exp(p.log_dt)[:, None] * p.w
    C = p.C / np.expm1(L * z)
    same = DSSExp(p.log_dt, np.log(-p.w.real), p.w.imag, C, p.D, p.W, p.b)
    found, wanted = DSS_SOFTMAX_LAYER.forward(refssm, p, u), DSS_EXP_LAYER.forward(refssm, same, u)
    assert np.abs(found - wanted).max() <= bound(p, u, np.abs(C).sum())


def test_a_signal_of_one_step_has_the_kernel_of_all_c_over_w():
    p = drawn(DSS_SOFTMAX_LAYER)[0]
    wanted = (p.C / p.w).sum(-1).real
    assert np.abs(of_softmax(p, 1)[:, 0] - wanted).max() <= 16 * U * np.abs(p.C / p.w).sum()


def test_the_published_epsilon_takes_more_than_half_of_a_kernel_of_one_step():
    """w = −½, dt = 1e-3, l = 1: K_0 = C/w = −2. With x = w (e^{l dt w} − 1), 1/x written
    x*/(|x|² + 1e-7) gives −2 |x|²/(|x|² + 1e-7) = −0.769."""
    p = drawn(DSS_SOFTMAX_LAYER)[0]
    p = replace(p, log_dt=np.full(H, np.log(1e-3)), w=np.array([-0.5 + 0j]), C=np.ones((H, 1)) + 0j)
    assert np.abs(of_softmax(p, 1) + 2).max() <= 16 * U
    x = -0.5 * np.expm1(-0.5e-3)
    assert round(-2 * x * x / (x * x + 1e-7), 3) == -0.769


def test_a_growing_mode_is_a_decaying_one_from_the_end_and_does_not_overflow():
    """w = log 2, dt = 1: K_{l−1−j} = C/w ½ 2^{−j}, up to 2^{−l}."""
    p = drawn(DSS_SOFTMAX_LAYER)[0]
    w = np.array([np.log(2.0) + 0j])
    p = replace(p, log_dt=0 * p.log_dt, w=w, C=np.ones((H, 1)) + 0j)
    K, j = of_softmax(p, 5000), np.arange(40.0)
    wanted = 0.5 / np.log(2) * 2.0**-j
    assert np.isfinite(K).all()
    assert (np.abs(K[:, ::-1][:, :40] - wanted) <= (16 + 2 * j) * U * wanted).all()
    assert (np.abs(K[:, :1000]) == 0).all()  # 2^{−4000}


def test_its_kernel_depends_on_the_length():
    p = drawn(DSS_SOFTMAX_LAYER)[0]
    assert np.abs(of_softmax(p, L)[:, :4] - of_softmax(p, 4)).min() > 0
    assert not DSS_SOFTMAX_LAYER.causal
    assert not DSS_SOFTMAX_LAYER.reads_future
