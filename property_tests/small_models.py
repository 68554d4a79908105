"""Small models of every layer, and what rounding errors of their gradients may come to."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import strategies as st

from refssm.conformance.standard import Standard
from refssm.layers import operators
from refssm.layers._parts.norms import NORMS
from refssm.layers.catalog import LAYERS
from refssm.layers.model import Model

ROOM = Standard.of(np.float32).room  # 16
NAMED_LAYERS = {layer.name: layer for layer in LAYERS}
seeds = st.integers(0, 2**32 - 1)
BY_LAYER = pytest.mark.parametrize("layer", LAYERS, ids=str)
BY_NORM = pytest.mark.parametrize("norm", NORMS)
BY_PLACE = pytest.mark.parametrize("prenorm", [True, False], ids=["pre-norm", "post-norm"])


@cache
def ops(role):
    return operators(role)


def model(layer, norm="layer", prenorm=True, depth=2):
    sizes = {"n": 2} if "n" in layer.sizes else {}
    if layer.name == "mamba2":  # several heads: what one adds by D, its norm takes away
        sizes["p"] = 2
    return Model(layer, 1, 3, h=4, depth=depth, norm=norm, prenorm=prenorm, sizes=sizes)


def drawn(seed, made, l=7, batch=3, dtype: type = np.float64):
    """Parameters, signals, labels and dropout masks."""
    rng = np.random.default_rng(seed)
    p = made.init(rng, dtype)
    u = rng.standard_normal((batch, l, 1)).astype(dtype)
    made = replace(made, dropout=0.3)
    return rng, p, u, rng.integers(0, 3, batch), made.masks(rng, (batch, l, 4), u.dtype)


def entries(p):
    """Every real number in named arrays: the name, the index, and 1 or i."""
    for name, a in p.items():
        for index in np.ndindex(a.shape):
            yield from ((name, index, unit) for unit in ((1, 1j) if a.dtype.kind == "c" else (1,)))


def conditioned(gradients, p):
    """G, and for each array of it ‖ |G| + Σ_x |∂G/∂x| |x| ‖ over all numbers x of p: what errors of
    one unit in each result and in each input come to. The derivatives are differences of G."""
    h, G = 2.0**-26, gradients(p)
    sizes = {name: np.abs(g) for name, g in G.items()}
    for name, index, unit in entries(p):
        x = p[name][index]
        x = x.imag if unit == 1j else x.real
        moved = p[name].copy()
        moved[index] += h * x * unit
        there = gradients({**p, name: moved})
        for n, g in there.items():
            sizes[n] = sizes[n] + np.abs(g - G[n]) / h
    return G, {name: np.linalg.norm(size) for name, size in sizes.items()}


def within(got, G, sizes, u):
    """The ratio ‖g − G‖ / (u K) of each array: the judge's tolerance is 16."""
    return {n: np.linalg.norm(g - G[n]) / (u * sizes[n]) for n, g in got.items() if sizes[n]}
