"""Presets of the stages of a chunk: what the stages before make of keys, gates and rates of models.

The regimes are those of the recurrences: gates that last, one step that forgets all, the same key
at all steps with the rate 2, for which powers of L are far larger than the inverse.
"""

import numpy as np

from refssm import initial
from refssm._numerics.triangular import unit_lower_inverse
from refssm.domains import unit_keys
from refssm.presets.preset import Preset, of_orders

OF_KEYS = 16  # keys of the inverse, which has no size n


def of_stages(keys, gates, betas, keyed=False):
    """All arguments of all stages by name, for m chunks of l steps where an operator has chunks."""

    def draw(rng, sizes):
        m, l = sizes.get("m", 0), sizes["l"]
        n, p, over = sizes.get("n", OF_KEYS), sizes.get("p", 1), (max(m, 1) * l,)
        k, log_g, beta = unit_keys(keys(rng, over, n)), gates(rng, over, n), betas(rng, over)
        log_g = log_g if keyed else log_g[..., :1]
        k, log_g, beta = (x.reshape(max(m, 1), l, *x.shape[1:]) for x in (k, log_g, beta))
        drawn = _stages(k, log_g, beta, initial.normal(rng, (max(m, 1), l, p)))
        one_gate = {} if keyed else {name: drawn[name][..., 0] for name in ("g", "log_g")}
        drawn = {name: x if m else x[0] for name, x in {**drawn, **one_gate}.items()}
        q = initial.normal(rng, (l, n)) / np.sqrt(n)
        return drawn | {"q": q, "S": initial.state(rng, (n, p))}

    return draw


def _stages(k, log_g, beta, v):
    """L, X, w and u of each chunk."""
    g = np.cumsum(log_g, axis=-2)
    spans = np.minimum(g[..., :, None, :] - g[..., None, :, :], 0)
    pairs = np.sum(k[..., :, None, :] * k[..., None, :, :] * np.exp(spans), axis=-1)
    L = np.tril(beta[..., None] * pairs, -1)
    X, rate = unit_lower_inverse(L), beta[..., None]
    writes = {"w": X @ (rate * np.exp(g) * k), "u": X @ (rate * v)}
    return {"k": k, "log_g": log_g, "g": g, "beta": beta, "L": L, "X": X, "v": v, **writes}


def presets_of_stages(rows, keyed=False):
    """A preset for each row of a name, a summary, and what draws keys, gates and rates."""
    return tuple(
        preset
        for name, summary, parts, _ in rows
        for preset in of_orders(
            name, summary, of_stages(*parts, keyed=keyed), (OF_KEYS,), along="points"
        )
    )


def without_keys(rows):
    """The same for stages without the size n."""
    return tuple(
        Preset(name, summary, of_stages(*parts), along="scan") for name, summary, parts, _ in rows
    )
