import numpy as np
import pytest

import refssm
from refssm.activations import gelu, sigmoid
from refssm.layers.s5 import S5_LAYER
from refssm.layers.s5_bidirectional import S5_BIDIRECTIONAL_LAYER as LAYER
from refssm.layers.s5_bidirectional import S5Bidirectional

U = 2.0**-53
H, N, L = 3, 4, 12


def drawn(seed=0):
    p = LAYER.init(np.random.default_rng(seed), h=H, n=N)
    return p, np.random.default_rng(1).standard_normal((L, H))


def with_output(p, C):
    return S5Bidirectional(**p.arrays() | {"C": C})


def size(p, u):
    """What L steps of sums of N and H terms have roundings of: moduli of all terms, with the slope
    of the gate below 1 + |y| |W|."""
    B_bar = refssm.discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))[1]
    x = np.abs(B_bar) @ np.abs(u).T.sum(-1)
    y = 2 * (np.abs(p.C).sum(0).reshape(2, N) @ x).sum() + np.abs(p.D * u).max()
    return y * (1 + y * np.abs(p.W).sum())


def test_its_parameters_are_those_of_the_published_code():
    """With bidirectional=True the published code has C1 and C2, each (h, n)."""
    h, n = 128, 32
    theirs = 2 * n + 2 * n * h + 2 * 2 * h * n + h + n + h * (h + 1)
    p = LAYER.init(np.random.default_rng(0), h=h, n=n)
    ours = sum(a.size * (2 if np.iscomplexobj(a) else 1) for a in p.arrays().values())
    assert ours == theirs == 41312


def test_it_starts_with_the_numbers_of_s5_and_another_output_matrix():
    p, one = drawn()[0], S5_LAYER.init(np.random.default_rng(0), h=H, n=N)
    assert all(np.array_equal(a, one.arrays()[n]) for n, a in p.arrays().items() if n != "C")
    assert np.array_equal(p.C[:, :N], one.C)
    assert not np.any(p.C[:, N:] == one.C)


def test_without_an_output_from_the_future_it_is_s5_and_without_the_past_s5_in_reversed_time():
    p, u = drawn()
    for half, turn in ((0, slice(None)), (1, slice(None, None, -1))):
        C = np.zeros_like(p.C)
        C[:, half * N : half * N + N] = p.C[:, :N]
        one = S5_LAYER.kind(**p.arrays() | {"C": p.C[:, :N]})
        wanted = S5_LAYER.forward(refssm, one, u[turn])[turn]
        difference = LAYER.forward(refssm, with_output(p, C), u) - wanted
        assert np.abs(difference).max() <= 4 * U * size(p, u)  # rows in other places of a product


def test_a_reversed_signal_gives_the_reversed_output_of_the_exchanged_directions():
    p, u = drawn()
    other = with_output(p, np.roll(p.C, N, axis=-1))
    difference = LAYER.forward(refssm, p, u)[::-1] - LAYER.forward(refssm, other, u[::-1])
    assert np.abs(difference).max() <= 4 * U * size(p, u)  # two sums in another order
    assert np.abs(LAYER.forward(refssm, p, u)[::-1] - LAYER.forward(refssm, p, u[::-1])).max() > 0.1


def test_an_impulse_counts_twice_at_its_own_time():
    """One mode, one channel: y_k = 2 Re(C a^k) b after it, 2 Re(C' a^k) b before, both at it."""
    p = LAYER.init(np.random.default_rng(0), h=1, n=1)
    p = S5Bidirectional(**p.arrays() | {"D": np.zeros(1), "W": np.zeros((1, 1)), "b": np.zeros(1)})
    (a,), ((b,),) = refssm.discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))
    K, back = (2 * (C * b * a ** np.arange(3)).real for C in p.C[0])
    y = np.array([back[2], back[1], back[0] + K[0], K[1], K[2]])
    got = LAYER.forward(refssm, p, np.eye(5)[2][:, None])[:, 0]
    assert np.abs(got - gelu(y) / 2).max() <= 64 * U * np.abs(y).max()  # σ(0) = ½


def test_it_is_the_gate_of_the_operator_of_its_system():
    p, u = drawn()
    a, B_bar = refssm.discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))
    D = np.diag(p.D).astype(complex)
    g = gelu(refssm.diagonal_ssm_bidirectional(a, B_bar, 2 * p.C, D, u.astype(complex)).real)
    wanted = g * sigmoid(g @ p.W + p.b)
    assert np.abs(LAYER.forward(refssm, p, u) - wanted).max() <= (L + N + H) * U * size(p, u)


@pytest.mark.long
def test_the_published_torch_code_gives_the_same_system_in_single_precision():
    """S5SSM(bidir=True) of s5-pytorch with our numbers; 2C for one mode of each pair."""
    torch = pytest.importorskip("torch", reason="published code: pip install -e '.[subjects]'")
    model = pytest.importorskip("s5.s5_model", reason="published code: '.[subjects]'")
    p, u = drawn()
    p = p.map(lambda x: x.astype(np.complex64 if np.iscomplexobj(x) else np.float32))
    u = u.astype(np.float32)
    V = torch.eye(N, dtype=torch.complex64)
    w = torch.tensor(p.w)
    theirs = model.S5SSM(w, V, V, H, N, 1e-3, 1e-1, bcInit="dense", bidir=True)
    with torch.no_grad():
        theirs.B.copy_(torch.view_as_real(torch.tensor(p.B)))
        theirs.C.copy_(torch.tensor(2 * p.C))
        theirs.D.copy_(torch.tensor(p.D))
        theirs.log_step.copy_(torch.tensor(p.log_dt).reshape(theirs.log_step.shape))
        found = theirs(torch.tensor(u)).numpy()
    exact = p.map(lambda x: x.astype(np.complex128 if np.iscomplexobj(x) else float))
    a, B_bar = refssm.discretize_diagonal_zoh(exact.w, exact.B, np.exp(exact.log_dt))
    D, signal = np.diag(exact.D).astype(complex), u.astype(complex)
    wanted = refssm.diagonal_ssm_bidirectional(a, B_bar, 2 * exact.C, D, signal).real
    # their (e^{dt w} − 1)/w has an error of u/|dt w|; each state sums l inputs
    loss = 1 / np.abs(np.exp(exact.log_dt) * exact.w).min()
    x = np.abs(B_bar) @ np.abs(u).T.sum(-1)
    scale = 2 * (np.abs(exact.C) @ np.tile(x, 2)).max() + np.abs(exact.D * u).max()
    assert np.abs(found - wanted).max() <= 2.0**-24 * (loss + 4 * (L + N + H)) * scale
