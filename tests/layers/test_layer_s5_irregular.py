"""S5 with gaps between its samples, against S5, mpmath, and published code."""

from typing import Any

import mpmath
import numpy as np
import pytest

import refssm
from refssm.layers import operators, s5, s5_irregular
from refssm.oracle import layers

U = 2.0**-53
H, N, L = 3, 4, 12
OPS = {"reference": refssm, "jit": operators("jit")}
each_role = pytest.mark.parametrize("role", OPS)


def drawn(batch=(2,), l=L):
    rng = np.random.default_rng(1)
    u, gaps = rng.standard_normal((*batch, l, H)), rng.exponential(1.0, (*batch, l))
    return s5_irregular.init(np.random.default_rng(0), h=H, n=N), u, gaps


def scale(p, u, gaps):
    """Moduli of all terms of y, times the largest slope of the gate; Re w < 0, so |a| ≤ 1."""
    dt = gaps[..., None] * np.exp(p.log_dt)
    x = (dt * (np.abs(u) @ np.abs(p.B).T)).sum(-2).max(0)  # |φ₁| ≤ 1
    y = 2 * (np.abs(p.C) @ x).max() + np.abs(p.D * u).max()
    return y * (1 + y * np.abs(p.W).sum())


ROUNDINGS = (L + 4) * (2 * N + H + 10)  # of the longest chain, as in property_tests/layered.py


@each_role
def test_gaps_of_one_give_s5(role):
    p, u, gaps = drawn()
    ones = np.ones_like(gaps)
    difference = s5_irregular.forward(OPS[role], p, u, ones) - s5.S5_LAYER.forward(refssm, p, u)
    assert np.abs(difference).max() <= ROUNDINGS * U * scale(p, u, ones)


@each_role
def test_equal_gaps_are_another_step_size(role):
    p, u, _ = drawn()
    gaps = np.full(L, 0.25)  # without the batch's axis
    wanted = s5.S5_LAYER.forward(refssm, p.resampled(0.25), u)
    difference = s5_irregular.forward(OPS[role], p, u, gaps) - wanted
    assert np.abs(difference).max() <= ROUNDINGS * U * scale(p, u, gaps)
    assert np.abs(wanted - s5.S5_LAYER.forward(refssm, p, u)).max() > 1e-3


def test_a_gap_of_zero_leaves_the_state():
    p, u, gaps = drawn()
    gaps[:, 5] = 0
    other = u.copy()
    other[:, 5] += 1
    y, changed = (s5_irregular.forward(refssm, p, x, gaps) for x in (u, other))
    later = np.arange(L) != 5
    assert np.array_equal(y[:, later], changed[:, later])
    assert np.any(y[:, 5] != changed[:, 5])  # D u, at its own time
    before, after = (
        s5_irregular.stateful(refssm, p, u[:, :k], gaps[:, :k], s5_irregular.rest(p, (2,)))[1]
        for k in (5, 6)
    )
    assert np.array_equal(*before, *after)


@each_role
def test_pieces_and_steps_give_the_output_of_the_whole(role):
    p, u, gaps = drawn()
    whole, bound = s5_irregular.forward(refssm, p, u, gaps), ROUNDINGS * U * scale(p, u, gaps)
    for cuts in ([5], [0, 3, 3], [*range(1, L)]):
        state, found = s5_irregular.rest(p, (2,)), []
        for a, b in zip([0, *cuts], [*cuts, L], strict=True):
            piece = u[:, a:b], gaps[:, a:b]
            y, state = s5_irregular.stateful(OPS[role], p, *piece, state)
            found.append(y)
        assert np.abs(np.concatenate(found, axis=-2) - whole).max() <= bound
    forgotten = [
        s5_irregular.stateful(refssm, p, u[:, k:][:, :3], gaps[:, k:][:, :3], state0)[0]
        for state0 in [s5_irregular.rest(p, (2,))]
        for k in range(0, L, 3)
    ]
    assert np.abs(np.concatenate(forgotten, axis=-2) - whole).max() > bound


def oracle(p, u, gaps):
    """The oracle of `s5` in 50 digits, each sample with a step of its own."""
    with mpmath.workdps(50):
        w, log_dt, *others = (exactly(a) for a in p.arrays().values())
        x, rows = [mpmath.mpf(0)] * N, []
        for row, gap in zip(exactly(u), exactly(gaps), strict=True):
            steps = [v + mpmath.log(gap) for v in log_dt]
            B, C, D, W, b = others
            y, x = layers.s5_layer_stateful([row], w, steps, B, C, D, W, b, x)
            rows += y
        return np.array(rows, dtype=float)


def exactly(a) -> Any:
    """Nested lists of mpmath's numbers."""
    return [exactly(x) for x in a] if a.ndim else mpmath.mpmathify(a.item())


@each_role
def test_the_definition_in_fifty_digits_gives_the_same(role):
    p, u, gaps = drawn(())
    wanted = oracle(p, u, gaps)
    found = s5_irregular.forward(OPS[role], p, u, gaps)
    bound = ROUNDINGS * U * scale(p, u[None], gaps[None])
    assert np.abs(found - wanted).max() <= bound
    late = s5_irregular.forward(OPS[role], p, u, np.roll(gaps, 1))  # a step after its sample
    assert np.abs(late - wanted).max() > bound


@each_role
def test_gaps_shared_by_a_batch_have_the_summed_gradient(role):
    p, u, _ = drawn()
    gaps, dy = np.random.default_rng(5).exponential(1.0, L), np.cos(u)
    shared = s5_irregular.vjp(OPS[role], dy, p, u, gaps)[2]
    each = s5_irregular.vjp(OPS[role], dy, p, u, np.stack([gaps, gaps]))[2]
    assert shared.shape == (L,)
    assert np.abs(shared - each.sum(0)).max() <= ROUNDINGS * U * np.abs(each).max() * L


def test_single_precision_stays_single():
    p, u, gaps = drawn()
    p = p.map(lambda x: x.astype(np.complex64 if np.iscomplexobj(x) else np.float32))
    u, gaps = u.astype(np.float32), gaps.astype(np.float32)
    y, back = s5_irregular.run(refssm, p, u, gaps)
    of_p, du, dgaps = back(y)
    kinds = {n: a.dtype for n, a in p.arrays().items()}
    assert y.dtype == du.dtype == dgaps.dtype == np.float32
    assert {n: a.dtype for n, a in of_p.arrays().items()} == kinds


@pytest.mark.long
def test_the_published_torch_code_gives_the_same_system_in_single_precision():
    """S5SSM of s5-pytorch with the gaps as its step_scale; 2C for one mode of each pair."""
    torch = pytest.importorskip("torch", reason="published code: pip install -e '.[subjects]'")
    model = pytest.importorskip("s5.s5_model", reason="published code: '.[subjects]'")
    p, u, gaps = drawn(())
    p = p.map(lambda x: x.astype(np.complex64 if np.iscomplexobj(x) else np.float32))
    u, gaps = u.astype(np.float32), gaps.astype(np.float32)
    V = torch.eye(N, dtype=torch.complex64)
    theirs = model.S5SSM(torch.tensor(p.w), V, V, H, N, 1e-3, 1e-1, bcInit="dense")
    with torch.no_grad():
        theirs.B.copy_(torch.view_as_real(torch.tensor(p.B)))
        theirs.C.copy_(torch.tensor(2 * p.C))
        theirs.D.copy_(torch.tensor(p.D))
        theirs.log_step.copy_(torch.tensor(p.log_dt).reshape(theirs.log_step.shape))
        found = theirs(torch.tensor(u), step_scale=torch.tensor(gaps)).numpy()
    exact = p.map(lambda x: x.astype(np.complex128 if np.iscomplexobj(x) else float))
    dt = gaps.astype(float)[:, None] * np.exp(exact.log_dt)
    a, f = refssm.discretize_diagonal_zoh(exact.w, np.ones((N, 1)), dt)
    x = refssm.linear_scan(a, f[..., 0] * (u @ exact.B.T))
    wanted = 2 * (x @ exact.C.T).real + exact.D * u
    # their (e^{dt w} − 1)/w has an error of u/|dt w|; each state sums l inputs
    inputs = np.abs(u) @ np.abs(exact.B).T
    loss = ((dt + 1 / np.abs(exact.w)) * inputs).sum(0)
    states = 4 * (L + N + H) * (dt * inputs).sum(0)
    size = 2 * (np.abs(exact.C) @ (loss + states)).max() + 4 * np.abs(exact.D * u).max()
    assert np.abs(found - wanted).max() <= 2.0**-24 * size


@each_role
def test_gaps_of_a_batch_and_one_signal_have_gradients_of_their_shapes(role):
    p, u, gaps = drawn()
    one = u.reshape(-1, *u.shape[-2:])[0]
    many = np.broadcast_to(gaps.reshape(-1, gaps.shape[-1])[0], (3, gaps.shape[-1])).copy()
    y, back = s5_irregular.run(OPS[role], p, one, many)
    assert y.shape == (3, *one.shape)
    dp, du, dgaps = back(np.ones_like(y))
    whole, alone = s5_irregular.run(OPS[role], p, one, many[0])
    dq, dv, _ = alone(np.ones_like(whole))
    assert (du.shape, dgaps.shape) == (one.shape, many.shape)
    limit = 3 * ROUNDINGS * U * scale(p, one[None], many[:1])
    assert np.abs(du - 3 * dv).max() <= limit * np.abs(dv).max()
    assert np.abs(dp.D - 3 * dq.D).max() <= limit * np.abs(dq.D).max()
