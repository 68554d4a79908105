"""A recurrence with one matrix for all times, in log₂ l rounds of matrix products.

    x_{2j+1} = A² x_{2j−1} + (b_{2j+1} + A b_{2j}),   x_{2j} = b_{2j} + A x_{2j−1}

The odd states are a recurrence of half the length with A²; the even ones follow from them. In all
2l products of A with a vector, as in a loop, but as products with matrices.
"""

from __future__ import annotations

from refssm_gpu._launching.arrays import Array, namespace


def driven(A: Array, b: Array) -> Array:
    """x_k = A x_{k−1} + b_k from rest, for (…, n, n) and (…, l, n); leading axes broadcast."""
    xp, l = namespace(A, b), b.shape[-2]
    if l < 2:
        return b
    step = xp.matrix_transpose(A)
    even, odd = b[..., 0::2, :], b[..., 1::2, :]
    pairs = odd + even[..., : odd.shape[-2], :] @ step
    at_odd = driven(A @ A if l > 3 else A, pairs)
    after = even[..., 1:, :] + at_odd[..., : even.shape[-2] - 1, :] @ step
    x = xp.empty((*at_odd.shape[:-2], l, b.shape[-1]), dtype=at_odd.dtype)
    x[..., 0::2, :] = xp.concat([_like(even[..., :1, :], at_odd), after], axis=-2)
    x[..., 1::2, :] = at_odd
    return x


def _like(first: Array, x: Array) -> Array:
    """`first` with the leading axes and the type of `x`."""
    xp = namespace(x)
    wide = xp.broadcast_to(first, (*x.shape[:-2], *first.shape[-2:]))
    return xp.astype(wide, x.dtype, copy=False)
