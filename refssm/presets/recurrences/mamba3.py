"""Presets of Mamba-3: heads as it starts and after training, and regimes that hide a carry.

Public tests draw steps of about 1e-2 over short rows, so that angles stay below a turn and a sum
that is lost between chunks changes little. In these they wind, or nothing is forgotten.
"""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders, without

FLOOR = 1e-4  # of −A [lahoti2026mamba3]
CLIFF = -1e4  # one step forgets all


def _drawing(decays, steps, shares, angles):
    """Arguments of a head, from (rng, shape) and for decays (rng, steps)."""

    def draw(rng, sizes):
        n, p, pairs = 2 * sizes["n"], sizes["p"], sizes["n"]
        over = (sizes["l"],) if "l" in sizes else ()
        dt = steps(rng, over)
        bias = np.ones(n)  # of q and k at the start
        q, k = (initial.normal(rng, (*over, n)) + bias for _ in range(2))
        length = np.maximum(1, np.sqrt((k**2).sum(-1, keepdims=True)))
        drawn = {"q": q, "k": k / length, "v": initial.normal(rng, (*over, p))}
        drawn |= {"log_g": decays(rng, dt), "dt": dt, "trap": shares(rng, over)}
        drawn |= {"angles": angles(rng, (*over, pairs)), "resets": initial.packed(rng, over)}
        for ending in ("0", ""):
            drawn[f"phase{ending}"] = rng.integers(2) * rng.uniform(0, 2 * np.pi, pairs)
            drawn[f"S{ending}"] = initial.state(rng, (n, p))
            key = initial.normal(rng, (n,))
            drawn[f"key{ending}"] = key / max(1, np.sqrt((key**2).sum()))
            drawn[f"value{ending}"] = initial.state(rng, (p,))
        return drawn

    return draw


def _starting(rng, shape):
    return initial.steps(rng, ()) * rng.standard_exponential(shape)


def _heavy_tailed(rng, dt):
    """A = −(1 + x) for x ≥ 0, −1/(1 − x) below, at most −FLOOR, times dt."""
    x = initial.normal(rng, dt.shape)
    return -np.maximum(np.where(x >= 0, 1 + x, 1 / (1 - np.minimum(x, 0))), FLOOR) * dt


def _lasting(rng, dt):
    return 0 * dt


def _half(rng, dt):
    """Every other step forgets nothing."""
    return np.where(np.arange(dt.size).reshape(dt.shape) % 2, -FLOOR * dt, 0)


def _cliff(rng, dt):
    g = np.array(-FLOOR * dt)
    g[dt.size // 2 if dt.shape else ...] = CLIFF
    return g


def _constant(number):
    return lambda rng, shape: np.full(shape, number)


def _normal(scale):
    return lambda rng, shape: scale * initial.normal(rng, shape)


def _one_way(rng, shape):
    """Angles of one sign, which wind."""
    return np.broadcast_to(rng.uniform(0.5, 2, shape[-1:]), shape).copy()


def _old_only(rng, shape):
    """Nearly all weight on the input of the step before."""
    return -8 + initial.normal(rng, shape)


ROWS = (
    ("start", "as Mamba-3 starts", (_heavy_tailed, _starting, _normal(0.5), _normal(0.5))),
    ("trained", "longer steps, all shares", (_heavy_tailed, _constant(0.5),
                                             _normal(4), _normal(2))),
    ("winding", "angles of many turns, nothing forgotten",
     (_lasting, _constant(0.25), _normal(1), _one_way)),
    ("before", "inputs a step late, every other step forgets nothing",
     (_half, _starting, _old_only, _normal(1))),
    ("cliff", "one step forgets all", (_cliff, _starting, _normal(1), _normal(1))),
)  # fmt: skip
OF_HEADS = tuple(
    preset
    for name, summary, parts in ROWS
    for preset in of_orders(name, summary, _drawing(*parts), (8, 32)[: 1 + (name == "trained")],
                            along="scan")
)  # fmt: skip


def _without_states(presets):
    for name in ("phase0", "S0", "key0", "value0"):
        presets = without(name, presets)
    return presets


PRESETS = {
    **{f"mamba3_siso{of}": OF_HEADS for of in ("", "_stateful", "_packed", "_states", "_step")},
    "mamba3_siso_packed_stateful": _without_states(OF_HEADS),
}
