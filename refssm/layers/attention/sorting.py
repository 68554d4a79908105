"""Blocks of keys in an order that is learnt: Sinkhorn sorting, and SORTCUT [tay2020sinkhorn].

    P = lim S(e^{R/τ}),   S divides all rows by their sums, then all columns   [sinkhorn1964]

P is doubly stochastic: a mixture of permutations, and one permutation for τ → 0 [mena2018sinkhorn].
It mixes blocks of steps. A step then attends to its own block and to the mixture at its place, or,
with SORTCUT, all steps attend to the first blocks of the mixture. Whole blocks are read, so the
result is not causal. Arrays are (…, l, n) with l a multiple of the blocks.
"""

import numpy as np


def sinkhorn(R, *, temperature=1.0, rounds=32):
    """A nearly doubly stochastic P from scores `R` (…, b, b), the same shape.

    Rows and columns are divided by their sums `rounds` times, columns last, by logarithms, so no
    exponential overflows. Row i of P says which blocks are mixed at place i. Raises ValueError
    unless R is square, `temperature` is above 0 and `rounds` at least 1.

    >>> import numpy as np
    >>> sinkhorn(np.log([[4.0, 1.0], [1.0, 1.0]])).round(4)
    array([[0.6667, 0.3333],
           [0.3333, 0.6667]])
    """
    R = np.asarray(R)
    if R.ndim < 2 or R.shape[-1] != R.shape[-2]:
        raise ValueError(f"sinkhorn: `R` must be square, (…, b, b), got {R.shape}")
    if not temperature > 0:
        raise ValueError(f"sinkhorn: `temperature` must be above 0, got {temperature}")
    if not rounds >= 1:
        raise ValueError(f"sinkhorn: `rounds` must be at least 1, got {rounds}")
    logarithm = R / temperature
    for _ in range(rounds):
        for axis in (-1, -2):
            logarithm = logarithm - _log_sum(logarithm, axis)
    return np.exp(logarithm)


def _log_sum(x, axis):
    """log Σ e^x along an axis, which stays."""
    largest = x.max(axis, keepdims=True)
    return largest + np.log(np.exp(x - largest).sum(axis, keepdims=True))


def sorted_blocks(x, P):
    """Block i of the result is Σ_j P_ij (block j of `x`); `x` (…, l, n), `P` (…, b, b).

    Raises ValueError unless l is a multiple of the number b of blocks.
    """
    blocks = _blocks("sorted_blocks", x, P)
    mixed = np.einsum("...ij,...jkn->...ikn", P, blocks)
    return mixed.reshape(*mixed.shape[:-3], *x.shape[-2:])


def sorted_attention(q, k, v, P):
    """Softmax attention of each step over its own block and the sorted block at its place.

    `q`, `k` (…, l, n) and `v` (…, l, p); the result is (…, l, p). Scores are q · k/√n. The weights
    of one step are 2 l/b numbers. Raises ValueError unless l is a multiple of b.
    """
    queries = _blocks("sorted_attention", q, P)
    keys, values = (
        np.concatenate([_blocks("sorted_attention", y, P) for y in (x, sorted_blocks(x, P))], -2)
        for x in (k, v)
    )
    y = _attended(queries, keys, values)
    return y.reshape(*y.shape[:-3], q.shape[-2], v.shape[-1])


def sortcut_attention(q, k, v, P, *, cut):
    """Softmax attention of all steps over the first `cut` sorted blocks: l · cut l/b weights.

    Shapes and scores as in `sorted_attention`; with all blocks and a permutation it is attention
    without a mask. Raises ValueError unless l is a multiple of b and `cut` from 1 to b.
    """
    blocks = P.shape[-1]
    if not 1 <= cut <= blocks:
        raise ValueError(f"sortcut_attention: `cut` must be from 1 to {blocks} blocks, got {cut}")
    kept = cut * (k.shape[-2] // blocks)
    return _attended(q, *(sorted_blocks(x, P)[..., :kept, :] for x in (k, v)))


def _attended(q, k, v):
    """Softmax(q kᵀ/√n) v."""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(-1, keepdims=True))
    return w @ v / w.sum(-1, keepdims=True)


def _blocks(name, x, P):
    """(…, l, n) as (…, b, l/b, n)."""
    (l, n), b = x.shape[-2:], P.shape[-1]
    if l % b:
        raise ValueError(f"{name}: the length must be a multiple of {b} blocks, got l={l}")
    return x.reshape(*x.shape[:-2], b, l // b, n)
