"""Diagonal systems from a given state: pieces, last states, gradients, memory."""

import numpy as np
import pytest
from recurrences import (
    DIAGONAL,
    FROM_REST,
    PAIRED,
    STATEFUL,
    VARYING,
    drawn,
    each_role,
    each_type,
    integers,
    several,
)

from refssm.conformance.judging.verdict import kind_of
from refssm.scan import DIAGONAL_SSM, DIAGONAL_SSM_REAL, DIAGONAL_SSM_STATEFUL, LINEAR_SCAN_FROM
from refssm.scan.blocks import backwards, no_resets, run, starts_of, windows

each_stateful = pytest.mark.parametrize("op", STATEFUL, ids=str)
each_pair = pytest.mark.parametrize(
    ("op", "plain"), list(zip(STATEFUL, (*FROM_REST,), strict=True)), ids=map(str, STATEFUL)
)


def piece(op, arrays, window):
    """The arguments of one piece of time, without the state."""
    a, B, C, D, u, _ = arrays
    return [a[window] if op in VARYING else a, B, C, D, u[window]]


@each_role
@each_type
@each_stateful
def test_pieces_cut_anywhere_are_the_whole(op, role, dtype):
    arrays, call = drawn(op, 1, dtype=dtype, l=7), op.implementation(role)
    y, last = call(*arrays)
    for k in range(8):
        head, between = call(*piece(op, arrays, slice(k)), arrays[-1])
        tail, end = call(*piece(op, arrays, slice(k, None)), between)
        assert np.array_equal(np.concatenate([head, tail]), y), k
        assert np.array_equal(end, last), k


@each_role
@each_stateful
def test_gradients_of_pieces_cut_anywhere_are_those_of_the_whole(op, role):
    arrays, vjp = drawn(op, 2, dtype="complex128", l=7), op.vjp(role)
    y, last = op.implementation(role)(*arrays)
    whole = dict(zip(op.inputs, vjp(y, last, *arrays), strict=True))
    for k in range(8):
        first, second = piece(op, arrays, slice(k)), piece(op, arrays, slice(k, None))
        between = op.implementation(role)(*first, arrays[-1])[1]
        *tail, carried = vjp(y[k:], last, *second, between)
        *head, dx0 = vjp(y[:k], carried, *first, arrays[-1])
        assert np.array_equal(dx0, whole["x0"]), k
        for name, g, h in zip(op.inputs, head, tail, strict=False):
            timed = name == "u" or (name == "a" and op in VARYING)
            joined = np.concatenate([g, h]) if timed else g + h
            assert np.array_equal(joined, whole[name]), (name, k)


@each_role
@each_pair
def test_from_a_state_of_zeros_it_is_the_form_from_rest(op, plain, role):
    *arrays, x0 = drawn(op, 3, dtype="complex128")
    y, _ = op.implementation(role)(*arrays, 0 * x0)
    assert np.array_equal(y, plain.implementation(role)(*arrays))
    gradients = op.vjp(role)(y, 0 * x0, *arrays, 0 * x0)[:-1]
    assert all(map(np.array_equal, gradients, plain.vjp(role)(y, *arrays)))


@each_role
@each_stateful
def test_the_last_state_of_nothing_is_a_copy_of_the_first(op, role):
    arrays = drawn(op, 4, l=0)
    y, x = op.implementation(role)(*arrays)
    assert y.shape == (0, 2)
    assert np.array_equal(x, arrays[-1])
    x += 1
    assert not np.array_equal(x, arrays[-1])
    gradients = op.vjp(role)(y, x, *arrays)
    assert np.array_equal(gradients[-1], x)
    assert not any(g.any() for g in gradients[:-1])


@each_role
@each_stateful
def test_the_free_response_is_the_powers_of_the_decays(op, role):
    a, B, C, D, u, x0 = drawn(op, 5, l=9)
    a = a[0] if op in VARYING else a
    decays = np.tile(a, (9, 1)) if op in VARYING else a
    y, x = op.implementation(role)(decays, B, C, D, 0 * u, x0)
    free = [a ** (k + 1) * x0 for k in range(9)]
    assert np.array_equal(y, (2 if op in PAIRED else 1) * np.array(free) @ C.T)
    assert np.array_equal(x, free[-1])


@each_role
@each_stateful
def test_the_state_is_the_one_that_the_scan_ends_in(op, role):
    a, B, C, D, u, x0 = drawn(op, 6, l=8, dtype="complex128")
    x = LINEAR_SCAN_FROM.implementation(role)(np.broadcast_to(a, (8, 3)), u @ B.T, x0)
    assert np.array_equal(op.implementation(role)(a, B, C, D, u, x0)[1], x[-1])
    # a state that only the next piece reads: the output does not change the last state
    assert np.array_equal(op.implementation(role)(a, B, 0 * C, D, u, x0)[1], x[-1])


@each_role
@each_stateful
def test_the_cotangent_of_the_last_state_alone(op, role):
    a, one, l = 2 + 1j, np.ones((1, 1)), 5
    decays = np.full((l, 1), a) if op in VARYING else np.array([a])
    u, x0, dx = np.zeros((l, 1)), np.array([3 - 1j]), np.array([1 + 1j])
    *others, dx0 = op.vjp(role)(np.zeros((l, 1)), dx, decays, one, one, one, u, x0)
    da, dB, dC, dD, du = others
    g = [np.conj(a) ** (l - 1 - k) * dx[0] for k in range(l)]
    assert dx0[0] == np.conj(a) * g[0]
    assert du.ravel().tolist() == [x.real for x in g]  # u, B, C and D are real
    each = [np.conj(a**k * x0[0]) * g[k] for k in range(l)]
    assert da.ravel().tolist() == (each if op in VARYING else [sum(each)])
    assert not any(g.any() for g in (dB, dC, dD))


def by_hand(dy, dx, a, B, C, D, u):
    """Gradients of two steps of one channel from rest."""
    x = [B * u[0], a * B * u[0] + B * u[1]]
    after = np.conj(C) * dy[1] + dx
    g = [np.conj(C) * dy[0] + np.conj(a) * after, after]
    return (
        [np.conj(x[0]) * g[1]],
        [[g[0] * np.conj(u[0]) + g[1] * np.conj(u[1])]],
        [[dy[0] * np.conj(x[0]) + dy[1] * np.conj(x[1])]],
        [[dy[0] * np.conj(u[0]) + dy[1] * np.conj(u[1])]],
        [[np.conj(B) * g[k] + np.conj(D) * dy[k]] for k in (0, 1)],
    )


@each_role
def test_the_gradient_by_hand(role):
    a, B, C, D, u, dy = 2 + 1j, 1 - 2j, 3j, -1 + 1j, (1 + 1j, 2 - 3j), (5.0, 1 - 1j)
    arrays = [a], [[B]], [[C]], [[D]], [[u[0]], [u[1]]]
    cotangent = [[dy[0] + 0j], [dy[1]]]
    gradients = DIAGONAL_SSM.vjp(role)(cotangent, *arrays)
    assert [g.tolist() for g in gradients] == list(by_hand(dy, 0, a, B, C, D, u))
    *gradients, dx0 = DIAGONAL_SSM_STATEFUL.vjp(role)(cotangent, [7 - 2j], *arrays, [0j])
    assert [g.tolist() for g in gradients] == list(by_hand(dy, 7 - 2j, a, B, C, D, u))
    after = np.conj(C) * dy[1] + 7 - 2j
    assert dx0.tolist() == [np.conj(a) * (np.conj(C) * dy[0] + np.conj(a) * after)]


@each_role
def test_the_gradient_of_the_real_form_by_hand(role):
    a, B, C, D, u, dy = 2 + 1j, 1 - 2j, 3j, -1.0, (1.0, 2.0), (5.0, -3.0)
    gradients = DIAGONAL_SSM_REAL.vjp(role)(
        [[dy[0]], [dy[1]]], [a], [[B]], [[C]], [[D]], [[u[0]], [u[1]]]
    )
    da, dB, dC, _, du = by_hand((10.0, -6.0), 0, a, B, C, 0, u)  # 2 dy for the state
    dD, skipped = [[dy[0] * u[0] + dy[1] * u[1]]], [D * dy[0], D * dy[1]]
    du = [[row[0].real + skip] for row, skip in zip(du, skipped, strict=True)]
    assert [g.tolist() for g in gradients] == [da, dB, dC, dD, du]


BATCHES = [((2,), 0), ((3, 1), 4), ((2,), 5), ((2,), 1), ((2,), 2), ((2,), 3)]


@pytest.mark.parametrize("batch", BATCHES, ids=str)
@each_role
@pytest.mark.parametrize("op", DIAGONAL, ids=str)
def test_leading_axes_broadcast_and_gradients_have_the_shapes_of_their_arguments(op, role, batch):
    arrays, (axes, which) = drawn(op, 7), batch
    which = min(which, len(arrays) - 1)
    (arrays[which],) = integers(8, axes + arrays[which].shape)
    outputs = several(op.implementation(role)(*arrays))
    assert [y.shape for y in outputs] == op.output_shapes(*arrays)
    gradients = op.vjp(role)(*outputs, *arrays)
    assert [g.shape for g in gradients] == [a.shape for a in arrays]
    for index in np.ndindex(*axes):
        member = [*arrays]
        member[which] = arrays[which][index]
        alone = several(op.implementation(role)(*member))
        assert all(np.array_equal(y[index], z) for y, z in zip(outputs, alone, strict=True))


@each_role
@each_stateful
def test_nan_in_the_state_reaches_what_depends_on_it(op, role):
    arrays = [np.ones_like(x) for x in drawn(op, 9)]
    arrays[-1][1] = np.nan
    y, x = op.implementation(role)(*arrays)
    assert kind_of(y).all()
    assert kind_of(x).tolist() == [0, 2, 0]
    arrays[-1] = np.ones((2, 3))
    arrays[-1][0] = np.nan
    y, x = op.implementation(role)(*arrays)
    assert not any(kind_of(z[1]).any() for z in (y, x))


@pytest.mark.parametrize("l", [*range(20), 99, 100, 101, 4095, 4096, 4097])
def test_windows_cover_each_step_once_and_are_as_many_as_the_root(l):
    pieces = windows(l)
    assert [k for window in pieces for k in range(l)[window]] == list(range(l))
    root = int(np.ceil(np.sqrt(l)))
    assert len(pieces) <= root
    assert all(window.stop - window.start <= root for window in pieces)


def recurrence(l, n=2):
    """Decays, inputs, cotangents and a state: small integers."""
    return integers(10, (l, n), (l, n), (l, n), (n,), (n,))


def along(x):
    return lambda window: x[..., window, :]


@pytest.mark.parametrize("l", [1, 2, 3, 7, 16, 17, 30])
def test_blocks_come_last_first_with_the_states_and_cotangents_of_a_plain_scan(l):
    a, b, d, x0, dx = recurrence(l)
    x = LINEAR_SCAN_FROM.reference(a, b, x0)
    after, g = dx, []
    for k in range(l - 1, -1, -1):
        g.insert(0, d[k] + after)
        after = a[k] * g[0]
    blocks = list(backwards(along(a), along(b), along(d), no_resets(l), x0, dx, l))
    assert [block.window for block in blocks] == windows(l)[::-1]
    for block in blocks:
        before = np.vstack([x0, x])[block.window]
        assert np.array_equal(block.x, x[block.window])
        assert np.array_equal(block.a, a[block.window])
        assert np.array_equal(block.before, before)
        assert np.array_equal(block.g, g[block.window])
        first = block.window.start
        assert np.array_equal(block.carried, a[first] * g[first])


def test_as_many_states_are_kept_as_there_are_blocks():
    l = 1000
    a, b, _, x0, _ = recurrence(l)
    a /= 2
    kept = starts_of(along(a), along(b), no_resets(l), x0, l)
    x = LINEAR_SCAN_FROM.reference(a, b, x0)
    starts = [window.start for window in windows(l)]
    assert len(kept) == len(starts) == 32
    assert np.array_equal(kept, [np.vstack([x0, x])[k] for k in starts])


def test_in_a_block_a_reset_is_a_choice_and_no_product():
    a, b, _, x0, _ = recurrence(6)
    x0[:], resets = np.nan, np.arange(6) == 2
    x = run(a, b, x0, resets)
    assert np.isnan(x[:2]).all()
    assert np.array_equal(x[2], b[2])
    assert np.array_equal(x[3:], LINEAR_SCAN_FROM.reference(a[3:], b[3:], b[2]))
