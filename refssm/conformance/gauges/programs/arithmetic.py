"""Arithmetic of programs: products as plain sums of NumPy, and roundings another way.

No BLAS changes a measured bound.
"""

from hashlib import blake2b

import numpy as np

LAST = 2**29 - 1  # the binary digits of double precision that single precision lacks


def times(A, x):
    """A x: (…, n, k), (…, k) -> (…, n)."""
    return (A * x[..., None, :]).sum(-1)


def product(A, M):
    """A M: (…, n, k), (…, k, m) -> (…, n, m).

    Complex products are four real ones: NumPy has no vector instructions for complex sums of
    products, and takes four times as long.
    """
    if not (np.iscomplexobj(A) and np.iscomplexobj(M)):
        return np.einsum("...nk,...km->...nm", A, M)
    a, b, c, d = map(np.ascontiguousarray, (A.real, A.imag, M.real, M.imag))
    real = product(a, c) - product(b, d)
    AM = np.empty_like(real, np.result_type(A, M))
    AM.real, AM.imag = real, product(a, d) + product(b, c)
    return AM


def adjoint(A):
    """Aᴴ."""
    return A.conj().swapaxes(-1, -2)


def seed_of(*arrays: np.ndarray) -> int:
    """A hash of the arrays, from which the signs of the moves are drawn."""
    made = blake2b(digest_size=8)
    for a in arrays:
        made.update(np.ascontiguousarray(a).tobytes())
    return int.from_bytes(made.digest(), "little")


def moved(a: np.ndarray, rng) -> np.ndarray:
    """Each number that is not 0 moved by one rounding up or down; flags stay."""
    if a.dtype.kind in "bi":
        return a
    if np.iscomplexobj(a):
        real = np.real(a).dtype
        parts = a.view(real) if a.ndim else a[None].view(real)
        return moved(parts, rng).view(a.dtype).reshape(a.shape)
    up = np.where(rng.random(a.shape) < 0.5, a.dtype.type(np.inf), a.dtype.type(-np.inf))
    return np.where(a == 0, a, np.nextafter(a, up))


def neighbour(exact: np.ndarray, dtype, rng: np.random.Generator) -> np.ndarray:
    """Numbers of double precision, each one of its two neighbours in single precision by `rng`.

    The last 29 of 52 binary digits are cut off, and where there were any, a one is added to the
    24th at random. With another `dtype`, the numbers themselves.
    """
    dtype = np.result_type(dtype, 1j) if np.iscomplexobj(exact) else dtype
    if np.finfo(dtype).dtype != np.float32:
        return exact.astype(dtype)
    digits = exact.reshape(-1).view(np.int64)
    beyond = digits & LAST
    up = (beyond != 0) & rng.integers(2, size=digits.shape, dtype=np.uint8).view(bool)
    digits = digits - beyond + (LAST + 1) * up
    return digits.view(exact.dtype).astype(dtype).reshape(exact.shape)


def to_one_side(exact: np.ndarray, dtype) -> np.ndarray:
    """Numbers of a wider type along time, the last axis but one: all rounded up, or all down.

    For decays that are computed at each step: where they are the same, their errors have one sign.
    """
    if np.iscomplexobj(exact):
        real = np.finfo(dtype).dtype
        return to_one_side(np.real(exact), real) + 1j * to_one_side(np.imag(exact), real)
    nearest = exact.astype(dtype)
    up = np.random.default_rng(seed_of(exact)).random(exact[..., :1, :].shape) < 0.5
    beyond = np.where(up, exact > nearest, exact < nearest)
    away = np.where(up, np.inf, -np.inf).astype(dtype)
    return np.where(beyond, np.nextafter(nearest, away), nearest)
