"""Causal softmax attention over a window, the first steps and random ones [zaheer2020bigbird].

    q, k, v = u W_q, u W_k, u W_v in each head
    y_i = Σ_j w_ij v_j,   w_ij = e^{s_ij} / Σ_j e^{s_ij},   s_ij = q_i · k_j/√n
    out = Σ_heads y W_out

Each sum is over the step itself, j = i, and over the j with 0 < i − j < t and reads_{r, i−j} ≠ 0,
where r is the number of the t steps before i that there are, at most t − 1. So with t at least the
length, r = i, and `reads` is any causal mask: row i says which distances step i reads. The state is
a cache of the last t keys and values.
"""

from dataclasses import dataclass

import numpy as np

from refssm.domains import cached_steps, layer_states, read_steps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import plus
from refssm.layers._parts.softmax import attended, attended_vjp, distances


@dataclass(frozen=True)
class SparseAttention(Parameters):
    """Parameters of `bigbird`: `g` heads of `n` keys and `p` values, a mask of `t` steps."""

    W_q: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_k: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_v: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    reads: np.ndarray = parameter(
        "t t", "1 for the window, the first steps and random ones, else 0", "fixed",
        domain=read_steps,
    )  # fmt: skip
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")


def init(rng, *, h, heads=4, n=16, p=16, t=64, window=8, first=2, random=3) -> SparseAttention:
    """New parameters in double precision; `t` is the length, the others count steps that are read.

    A step reads itself and the `window` − 1 before, the `first` steps of all, and `random` others.
    """
    W_q, W_k, W_v = (drawn(rng, heads, h, size) for size in (n, n, p))
    W_out = drawn_back(rng, heads, p, h)
    return SparseAttention(W_q, W_k, W_v, mask(rng, t, window, first, random), W_out)


def mask(rng, t, window, first, random):
    """1 at row i and column d if step i reads the step d before, else 0: (t, t)."""
    reads = np.zeros((t, t))
    for i, row in enumerate(reads):
        row[: min(window, i + 1)] = 1
        row[max(0, i - first + 1) : i + 1] = 1
        others = np.flatnonzero(row[: i + 1] == 0)
        row[rng.choice(others, min(random, others.size), replace=False)] = 1
    return reads


def _parts(p, u):
    """q/√n, k and v."""
    if not len(p.reads):
        raise ValueError("bigbird: `reads` has no distances, wanted t ≥ 1")
    q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
    return q * p.W_q.dtype.type(1 / np.sqrt(max(1, p.W_q.shape[-1]))), k, v


def _read(reads, rows, m):
    """Whether each of the last steps reads a key, by its row of the mask: (…, 1, l, m)."""
    t, l = reads.shape[-1], rows.shape[-1]
    away = np.asarray(distances(l, m), like=rows)
    chosen = (reads != 0)[rows[..., :, None], np.clip(away, 0, t - 1)]
    return (chosen | (away == 0))[..., None, :, :]


def _none(reads):
    """Scores of distances that change nothing: (1, t)."""
    return 0 * reads[:1]


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    (q, k, v), l = _parts(p, u), u.shape[-2]
    rows = np.minimum(np.arange(l, like=u), len(p.reads) - 1)
    y, w = attended(q, k, v, _none(p.reads), reads=_read(p.reads, rows, l))

    def back(dout):
        dy, dW_out = merged_vjp(dout, y, p.W_out)
        dq, dk, dv, _ = attended_vjp(dy, y, w, q, k, v, _none(p.reads))
        du, dW_v = headed_vjp(dv, u, p.W_v)
        through, dW_k = headed_vjp(dk, u, p.W_k)
        du = plus(du, through)
        scale = p.W_q.dtype.type(1 / np.sqrt(max(1, p.W_q.shape[-1])))
        through, dW_q = headed_vjp(dq * scale, u, p.W_q)
        return SparseAttention(dW_q, dW_k, dW_v, 0 * p.reads, dW_out), plus(du, through)

    return merged(y, p.W_out), back


def stateful(ops, p, u, state):
    """The output for a piece from a cache, and the next cache."""
    (q, *new), l, t = _parts(p, u), u.shape[-2], len(p.reads)
    new.append(np.ones((*u.shape[:-1], 1), u.dtype, like=u))
    seen = np.broadcast_to(state[2], (*u.shape[:-2], state[2].shape[-1]))[..., None]
    old = *state[:2], seen
    k, v, seen = (np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))
    seen = seen[..., 0]
    there = np.cumsum(seen != 0, axis=-1)  # of the first j + 1 places
    before = there[..., t - 1 : t - 1 + l]
    rows = before - np.concatenate([0 * there[..., :1], there[..., : l - 1]], axis=-1)[..., :l]
    reads = _read(p.reads, np.minimum(rows, t - 1), t + l)
    y, _ = attended(q, k, v, _none(p.reads), seen[..., None, None, :], reads)
    return merged(y, p.W_out), (k[..., l:, :], v[..., l:, :], seen[..., l:])


BIGBIRD_LAYER = Layer(
    name="bigbird", kind=SparseAttention, init=init, run=run, stateful=stateful,
    source="zaheer2020bigbird",  # states: the cache, and 1 where it holds a step, else 0
    states={"K": ("g t n", layer_states), "V": ("g t p", layer_states),
            "seen": ("t", cached_steps)},
    traits=frozenset({"matrix-product", "quadratic"}),
    tags=("BigBird", "sparse attention", "global tokens", "attention mask"),
)  # fmt: skip
