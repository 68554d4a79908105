"""Rows in compiled loops: the same numbers whatever the strides, the length and the address."""

# pyright: reportCallIssue=false
# (an intrinsic is called without its first parameter)

import numpy as np
import pytest
from numba import njit

import refssm
from refssm.jit import convolution, scan
from refssm.jit._vectors.rows import over_rows
from refssm.jit.scan.linear import scan as states
from refssm.jit.scan.linear import scan_back, scan_vjp


@over_rows(2)
def products(a, b, flag):
    return a * b.conj() + b, (a * a).unless(flag)


@over_rows(2, backwards=True)
def products_backwards(a, b, flag):
    return a * b.conj() + b, (a * a).unless(flag)


@njit
def all_products(a, b, flag, y, z, yb, zb):
    for k in range(a.shape[0]):
        products(y, k, z, k, a, k, b, k, flag)
        products_backwards(yb, k, zb, k, a, k, b, k, flag)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [0, 1, 3, 8, 16, 23, 64, 130, 300])
def test_a_formula_covers_each_entry_of_a_row_once_wherever_it_begins(n, dtype):
    """Whole numbers, whose products are exact, in rows that begin at each address in a line."""
    rng, step = np.random.default_rng(n), np.dtype(dtype).itemsize
    for offset in range(0, 64, step):
        a, b = (rng.integers(-9, 9, (3, n)).astype(dtype) for _ in range(2))
        if dtype.startswith("c"):
            a, b = a + 1j * rng.integers(-9, 9, (3, n)), b - 1j * rng.integers(-9, 9, (3, n))
            a, b = a.astype(dtype), b.astype(dtype)
        outputs = [np.full(5 * n + 64, np.nan, dtype) for _ in range(4)]
        start = (offset - outputs[0].ctypes.data) % 64 // step
        views = [y[start : start + 3 * n].reshape(3, n) for y in outputs]
        for flag in (False, True):
            all_products(a, b, flag, *views)
            for y in views[::2]:
                np.testing.assert_array_equal(y, a * b.conj() + b)
            for z in views[1::2]:
                np.testing.assert_array_equal(z, 0 if flag else a * a)
        for y in outputs:  # nothing beside the rows was written
            assert np.isnan(y[:start]).all()
            assert np.isnan(y[start + 3 * n :]).all()


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


@pytest.mark.parametrize(
    ("l", "n"),
    [(0, 3), (1, 3), (7, 3), (7, 40), (408, 40), (409, 40), (410, 40), (818, 40), (1000, 40),
     (9, 20000), (10, 20000)],
)  # fmt: skip
def test_a_gradient_is_the_same_through_states_and_through_inputs(l, n):
    """`scan_vjp` computes the states again, block by block; `scan_back` gets them."""
    draw = np.random.default_rng(1).standard_normal
    a, b, dx = (draw((2, l, n)) for _ in range(3))
    dlast, x0, resets = draw((2, n)), draw((2, n)), np.isin(np.arange(l), (4, 409, 900))
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
