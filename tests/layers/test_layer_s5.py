import numpy as np
import pytest

import refssm
from refssm import initial
from refssm.layers.s5 import S5, S5_LAYER

U = 2.0**-53


def test_its_parameters_are_those_of_the_published_code():
    """Of the SSM and its gate `out2`, with ssm_size_base=64, d_model=128, half_glu1."""
    h, n = 128, 32
    theirs = 2 * n + 2 * n * h + 2 * h * n + h + n + h * (h + 1)  # Lambda, B, C, D, log_step, out2
    p = S5_LAYER.init(np.random.default_rng(0), h=h, n=n)
    ours = sum(a.size * (2 if np.iscomplexobj(a) else 1) for a in p.arrays().values())
    assert ours == theirs == 33120


def test_its_state_is_one_number_of_each_pair():
    p = S5_LAYER.init(np.random.default_rng(0), h=3, n=4, blocks=2)
    (x,) = S5_LAYER.rest(p, (5,))
    assert (x.shape, x.dtype) == ((5, 4), np.complex128)
    assert np.array_equal(p.w[:2], p.w[2:])  # two blocks of two pairs


def test_it_starts_as_the_real_system_of_hippo_n():
    """With one step for all states, y = C₀ x + D u for x of HiPPO-N under zero-order hold."""
    h, n, l = 2, 3, 10
    p = S5_LAYER.init(np.random.default_rng(0), h=h, n=n)
    p = S5(**(p.arrays() | {"log_dt": np.full(n, np.log(0.05))}))
    V = refssm.block_diagonal(n=2 * n, blocks=1)[1][:, n:]
    assert np.array_equal(p.w, initial.s5(np.random.default_rng(0), n=n, m=h, p=h)["w"])
    A, B, C = refssm.normal_legs(n=2 * n), 2 * (V @ p.B).real, 2 * (p.C @ V.conj().T).real
    A_bar, B_bar = refssm.discretize_zoh(A, B, 0.05)
    u, x, y = np.random.default_rng(1).standard_normal((l, h)), np.zeros(2 * n), []
    for u_k in u:
        x = A_bar @ x + B_bar @ u_k
        y.append(C @ x + p.D * u_k)
    a, B_bar = refssm.discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))
    ours = refssm.diagonal_ssm_real(a, B_bar, p.C, np.diag(p.D), u)
    # l steps of products of 2n terms, whose norms are below those of C, B and u
    size = np.linalg.norm(C) * np.linalg.norm(B) * np.abs(u).sum() + np.abs(p.D * u).max()
    assert np.abs(ours - y).max() <= l * 2 * n * 16 * U * size


def test_both_modes_of_each_pair_give_the_output_without_the_factor_two():
    p = S5_LAYER.init(np.random.default_rng(0), h=2, n=3)
    a, B_bar = refssm.discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))
    u = np.random.default_rng(1).standard_normal((10, 2))
    pairs = [np.concatenate([part, part.conj()]) for part in (a, B_bar, p.C.T)]
    both = refssm.diagonal_ssm(pairs[0], pairs[1], pairs[2].T, np.diag(p.D), u)
    ours = refssm.diagonal_ssm_real(a, B_bar, p.C, np.diag(p.D), u)
    # ten steps of products of six terms, their norms below those of C, B_bar and u; |a| < 1
    size = np.linalg.norm(p.C) * np.linalg.norm(B_bar) * np.abs(u).sum() + np.abs(p.D * u).max()
    assert np.abs(both - ours).max() <= 10 * 6 * 16 * U * size
    assert np.abs(ours - u * p.D).max() > 1e3 * 10 * 6 * 16 * U * size  # half of it would be seen


def test_blocks_that_do_not_divide_the_pairs_are_refused():
    with pytest.raises(ValueError, match="`blocks` must divide n=3, got 2"):
        S5_LAYER.init(np.random.default_rng(0), h=1, n=3, blocks=2)


@pytest.mark.long
def test_the_published_torch_code_gives_the_same_output_in_single_precision():
    """S5SSM of s5-pytorch with our numbers; it has both modes of each pair, we have one."""
    torch = pytest.importorskip("torch", reason="published code: pip install -e '.[subjects]'")
    model = pytest.importorskip("s5.s5_model", reason="published code: '.[subjects]'")
    h, n, l = 3, 4, 20
    p = S5_LAYER.init(np.random.default_rng(0), h=h, n=n)
    p = p.map(lambda x: x.astype(np.complex64 if np.iscomplexobj(x) else np.float32))
    u = np.random.default_rng(1).standard_normal((l, h)).astype(np.float32)

    def both(a, axis):
        return torch.tensor(np.concatenate([a, a.conj()], axis=axis))

    V = torch.eye(2 * n, dtype=torch.complex64)
    theirs = model.S5SSM(both(p.w, 0), V, V, h, 2 * n, 1e-3, 1e-1, bcInit="dense")
    with torch.no_grad():
        theirs.B.copy_(torch.view_as_real(both(p.B, 0)))
        theirs.C.copy_(both(p.C, 1))
        theirs.D.copy_(torch.tensor(p.D))
        theirs.log_step.copy_(torch.tensor(np.tile(p.log_dt, 2)).reshape(theirs.log_step.shape))
        found = theirs(torch.tensor(u)).numpy()
    exact = p.map(lambda x: x.astype(np.complex128 if np.iscomplexobj(x) else float))
    a, B_bar = refssm.discretize_diagonal_zoh(exact.w, exact.B, np.exp(exact.log_dt))
    wanted = refssm.diagonal_ssm_real(a, B_bar, exact.C, np.diag(exact.D), u.astype(float))
    # their (e^{dt w} − 1)/w has an error of u/|dt w|, dt |w| ≥ 5e-4; each state sums l inputs
    loss = 1 / np.abs(np.exp(exact.log_dt) * exact.w).min()
    x = np.abs(B_bar) @ np.abs(u).T.sum(-1)
    size = 2 * (np.abs(exact.C) @ x).max() + np.abs(exact.D * u).max()
    assert np.abs(found - wanted).max() <= 2.0**-24 * (loss + 4 * (l + n + h)) * size
