"""Arguments of a chunk's stages, which are results of the stages before them.

A stage is judged alone, but nobody calls it with arrays that are drawn one by one: X is the inverse
of what keys, gates and rates make, the states are those of a sequence. So the sequence is drawn,
(b, h, c, l, …) for c chunks of l steps, and the stages before are the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import refssm

Sizes = Mapping[str, int]
Sequence = dict[str, np.ndarray]  # q, k, v, log_g, beta, and the state S before the first chunk
Together = Callable[[np.random.Generator, Sizes], Sequence]

STAGES = ("chunk_writes", "chunk_states", "chunk_outputs")
CHUNK = 64


def in_chunks(sizes: Sizes) -> Sizes:
    """Sizes with a length, as chunks of at most 64 steps: a stage has them as an axis."""
    l = min(sizes["l"], CHUNK)
    return {**sizes, "l": l, "c": -(-sizes["l"] // l)}


def usual(rng: np.random.Generator, sizes: Sizes) -> Sequence:
    """Queries, values and S normal, keys of norm 1, gates and rates sigmoids of normal numbers."""
    rows = _rows(sizes)
    q, k, v = (rng.standard_normal((*rows, sizes[n])) for n in ("n", "n", "p"))
    return {
        "q": q,
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": v,
        "log_g": -np.log1p(np.exp(rng.standard_normal(rows))),
        "beta": 1 / (1 + np.exp(rng.standard_normal(rows))),
        "S": rng.standard_normal((*rows[:2], sizes["n"], sizes["p"])),
    }


def of_gpu_mode(rng: np.random.Generator, sizes: Sizes) -> Sequence:
    """As GPU MODE's three tasks: gates are sums of −|N| from the first step on, summed once more.

    What they call g is such a sum already when the sum of each chunk is taken, so the gate of step
    t is about −0.8 t. The scale of the queries, 1/√n, is a part of them here.
    """
    drawn = usual(rng, sizes)
    k = rng.standard_normal(drawn["k"].shape)
    b, h, c, l = _rows(sizes)
    steps = -np.abs(rng.standard_normal((b, h, c * l)))
    root = np.sqrt(sizes["n"])
    return drawn | {
        "q": drawn["q"] / root,
        "k": k / root,
        "log_g": np.cumsum(steps, -1).reshape(b, h, c, l),
        "S": 0 * drawn["S"],
    }


def _rows(sizes: Sizes) -> tuple[int, int, int, int]:
    return sizes["b"], sizes["h"], sizes["c"], sizes["l"]


def arguments(stage: str, drawn: Sequence) -> Sequence:
    """The arguments of one stage, by their names."""
    q, k, v, beta, S = (drawn[name] for name in ("q", "k", "v", "beta", "S"))
    g = refssm.chunk_gates(drawn["log_g"])
    X = refssm.chunk_inverse(refssm.chunk_products(k, g, beta))
    if stage == "chunk_writes":
        return {"k": k, "v": v, "g": g, "beta": beta, "X": X}
    w, u = refssm.chunk_writes(k, v, g, beta, X)
    if stage == "chunk_states":
        return {"k": k, "w": w, "u": u, "g": g, "S": S}
    states, new, _ = refssm.chunk_states(k, w, u, g, S)
    return {"q": q, "k": k, "v": new, "g": g, "S": states}
