"""Rows of matrices in compiled loops: the same numbers whatever the strides and the length."""

# pyright: reportCallIssue=false
# (an intrinsic is called without its first parameter)

import numpy as np
import pytest
from numba import njit

import refssm
from refssm.jit import convolution, scan
from refssm.jit._rows import by_rows, row
from refssm.jit.scan.linear import scan as states
from refssm.jit.scan.linear import scan_back, scan_vjp


@njit
def first_of_rows(matrix):
    return [row(matrix, k)[0] for k in range(matrix.shape[0])] if by_rows(matrix) else [-1.0]


def test_only_rows_of_adjacent_entries_are_seen_as_vectors():
    matrix = np.arange(6 * 64, dtype="f8").reshape(6, 64)
    assert first_of_rows(matrix) == [64 * k for k in range(6)]
    assert first_of_rows(matrix[::-2, 3:]) == [64 * k + 3 for k in (5, 3, 1)]
    assert first_of_rows(np.broadcast_to(matrix[1], (3, 64))) == [64] * 3  # a decay for every step
    for other in (
        matrix[:, ::2],
        matrix[:, ::-1],
        matrix.T.copy().T,
        np.broadcast_to(1.0, (6, 64)),
    ):
        assert first_of_rows(other) == [-1.0]
    assert first_of_rows(matrix[:, :15]) == [-1.0]  # too short
    assert first_of_rows(matrix[:0]) == []


def layouts(x):
    """The same numbers in other strides and at other offsets."""
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1] + 1), np.nan, x.dtype)
    wide[..., 1::2] = x
    offset = np.concatenate([np.full_like(x[..., :1], np.nan), x], axis=-1)[..., 1:]
    frozen = x.copy()
    frozen.flags.writeable = False
    late = x[..., ::-1, :].copy()[..., ::-1, :]
    return {
        "every other": wide[..., 1::2],
        "an offset": offset,
        "columns": np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2),
        "backwards": x[..., ::-1].copy()[..., ::-1],
        "backwards in time": late,
        "read-only": frozen,
        "misaligned": np.frombuffer(b"\0" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
    }


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
@pytest.mark.parametrize("n", [1, 15, 16, 40, 67])
def test_scans_and_gradients_are_the_same_in_every_layout(n, dtype):
    draw = np.random.default_rng(0).standard_normal
    a, b, dx = (draw((3, 9, n)).astype(dtype) for _ in range(3))
    resets = np.arange(9) % 4 == 3
    gradients = scan.linear_scan_packed_vjp(dx, a, b, resets)[:2]
    expected = scan.linear_scan_packed(a, b, resets), *gradients
    for name in layouts(a):  # no sum is reordered and no product is fused: equal bit by bit
        a_, b_, dx_ = (layouts(x)[name] for x in (a, b, dx))
        mine = scan.linear_scan_packed_vjp(dx_, a_, b_, resets)[:2]
        for x, y in zip((scan.linear_scan_packed(a_, b_, resets), *mine), expected, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=name)


@pytest.mark.parametrize("dtype", ["f4", "c8"])
@pytest.mark.parametrize(
    ("l", "t"), [(1, 1), (2, 2), (3, 4), (4, 4), (9, 3), (40, 4), (40, 11), (5, 9)]
)
def test_short_convolutions_are_the_same_in_every_layout(l, t, dtype):
    """A copy of a strided signal must live as long as the loops that read it."""
    draw = np.random.default_rng(0).standard_normal
    u, dy, k, s0 = (draw((3, 50, size)).astype(dtype) for size in (l, l, t, t))
    ds = np.zeros_like(s0)
    y, _ = convolution.short_convolution_stateful(u, k, s0)
    gradients = convolution.short_convolution_stateful_vjp(dy, ds, u, k, s0)
    for name in layouts(u):
        u_, dy_, k_, s0_ = (layouts(x)[name] for x in (u, dy, k, s0))
        mine, _ = convolution.short_convolution_stateful(u_, k_, s0_)
        np.testing.assert_array_equal(mine, y, err_msg=name)
        again = convolution.short_convolution_stateful_vjp(dy_, ds, u_, k_, s0_)
        for x, expected in zip(again, gradients, strict=True):
            np.testing.assert_array_equal(x, expected, err_msg=name)


@pytest.mark.parametrize("n", [3, 40])
def test_a_gradient_is_the_same_through_states_and_through_inputs(n):
    """`scan_vjp` keeps the states in the memory of da; `scan_back` gets them."""
    draw = np.random.default_rng(1).standard_normal
    a, b, dx = (draw((2, 7, n)) for _ in range(3))
    dlast, x0, resets = draw((2, n)), draw((2, n)), np.arange(7) == 4
    x = states(a, b, x0, resets)
    pairs = zip(
        scan_vjp(dx, dlast, a, b, x0, resets), scan_back(dx, dlast, a, x, x0, resets), strict=True
    )
    for mine, theirs in pairs:
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n", [3, 40])
def test_no_nan_of_one_sequence_reaches_another_one_or_its_gradients(n):
    a, b, dx = (np.ones((6, n)) for _ in range(3))
    b[1], resets = np.nan, np.arange(6) == 3
    assert not np.isnan(scan.linear_scan_packed(a, b, resets)[3:]).any()
    da, db, _ = scan.linear_scan_packed_vjp(dx, a, b, resets)
    assert not np.isnan(da[3:]).any()
    assert not np.isnan(db).any()
    expected = refssm.linear_scan_packed_vjp(dx, a, b, resets)
    np.testing.assert_array_equal(da, expected[0])
