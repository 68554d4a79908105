"""Presets of scans: the ring of LRU, blocks of S5, gates of Griffin, averages."""

import numpy as np

from refssm import initial
from refssm.presets import krylov
from refssm.presets.preset import of_orders, without

RING = {"r_min": 0.9, "r_max": 0.999}


def _over_time(decays):
    """A decay for each state, the same at every step; b normal."""

    def draw(rng, sizes):
        n, l = sizes["n"], sizes.get("l", 1)
        a = np.broadcast_to(decays(rng, n), (l, n))
        drawn = {"a": a, "b": initial.normal(rng, (l, n)), "x0": initial.state(rng, (n,))}
        return drawn | {"resets": initial.packed(rng, (l,))}

    return draw


def _gated(rng, sizes):
    n, l = sizes["n"], sizes["l"]
    a = initial.gated_decays(rng, l=l, n=n)
    b = np.sqrt(-np.expm1(2 * np.log(a))) * initial.normal(rng, (l, n))
    return {"a": a, "b": b, "x0": initial.state(rng, (n,)), "resets": initial.packed(rng, (l,))}


def _one_step(rng, sizes):
    n = sizes["n"]
    return {"a": _ring(rng, n), "b": initial.complex_normal(rng, (n,)), "x": initial.state(rng, n)}


def _ring(rng, n):
    return initial.lru(rng, n=n, m=1, p=1, **RING)["a"]


def _modes(rng, n):
    system = initial.s5(rng, n=n, m=1, p=1)
    return np.exp(initial.steps(rng, (n,)) * system["w"])


def _averages(rng, n):
    return rng.uniform(0.4, 0.95, n)


def _layer(unit):
    """The system of a layer with D normal; `a` over time where the operator wants it."""

    def draw(rng, sizes):
        n, m, p, l = (sizes[d] for d in "nmpl")
        a, B, C = unit(rng, n, m, p)
        system = {"a": a, "B": B, "C": C, "D": initial.normal(rng, (p, m))}
        return system | {"u": initial.normal(rng, (l, m)), "x0": initial.state(rng, (n,))}

    return draw


def _lru(rng, n, m, p):
    unit = initial.lru(rng, n=n, m=m, p=p, **RING)
    return unit["a"], unit["gamma"][:, None] * unit["B"], unit["C"]


def _s5(rng, n, m, p):
    system, dt = initial.s5(rng, n=n, m=m, p=p), initial.steps(rng, (n,))
    a = np.exp(dt * system["w"])
    return a, ((a - 1) / system["w"])[:, None] * system["B"], 2 * system["C"]


def _damped(rng, n, m, p):
    return _averages(rng, n), initial.normal(rng, (n, m)), initial.normal(rng, (p, n))


def _both_ways(rng, n, m, p):
    a, B, C = _lru(rng, n, m, p)
    return a, B, np.concatenate([C, _lru(rng, n, m, p)[2]], axis=1)


def _varying(draw):
    def varying(rng, sizes):
        drawn = draw(rng, sizes)
        return {**drawn, "a": np.broadcast_to(drawn["a"], (sizes["l"], sizes["n"]))}

    return varying


def _dense(rng, sizes):
    l, n = sizes["l"], sizes["n"]
    system = krylov.draw(rng, sizes)
    b = system["B"] * initial.normal(rng, (l, 1))
    return {"A": system["A"], "b": b, "x0": initial.state(rng, (n,))}


def _dense_varying(rng, sizes):
    l, n = sizes.get("l", 1), sizes["n"]
    drawn = _dense(rng, {**sizes, "l": l})
    if "l" not in sizes:  # one step
        return {"A": drawn["A"], "b": drawn["b"][0], "x": drawn["x0"]}
    A = np.broadcast_to(drawn["A"], (l, n, n))
    return {**drawn, "A": A, "resets": initial.packed(rng, (l,))}


RINGS, BLOCKS = "LRU's ring, moduli 0.9 to 0.999", "modes of S5 after zero-order hold"
AVERAGES = "constant decays 0.4 to 0.95"
SCANS = (
    *of_orders("lru", RINGS, _over_time(_ring), (16, 64), along="scan"),
    *of_orders("s5", BLOCKS, _over_time(_modes), (64,), along="scan"),
    *of_orders("griffin", "gated decays of Griffin", _gated, (16,), along="scan"),
    *of_orders("averages", AVERAGES, _over_time(_averages), (16,), along="scan"),
)
LAYERS = {"lru": (RINGS, _layer(_lru)), "s5": (BLOCKS, _layer(_s5))}
SYSTEMS = tuple(
    p
    for name, (words, draw) in LAYERS.items()
    for p in of_orders(name, words, draw, (16, 64), along="scan")
) + of_orders("averages", AVERAGES, _layer(_damped), (16,), along="scan")
VARYING = tuple(
    p
    for name, (words, draw) in LAYERS.items()
    for p in of_orders(name, words, _varying(draw), (16,), along="scan")
) + of_orders("averages", AVERAGES, _varying(_layer(_damped)), (16,), along="scan")
PRESETS = {
    **dict.fromkeys(
        ("linear_scan", "linear_scan_from", "linear_scan_packed", "linear_scan_reversed"), SCANS
    ),
    "linear_scan_packed_from": without("x0", SCANS),
    **dict.fromkeys(
        (
            "dense_scan_varying",
            "dense_scan_varying_from",
            "dense_scan_varying_packed",
            "dense_step",
        ),
        of_orders("legs", "HiPPO-LegS, bilinear map", _dense_varying, (16,), along="scan"),
    ),
    "linear_step": of_orders("lru", RINGS, _one_step, (16, 64)),
    **dict.fromkeys(
        ("dense_scan", "dense_scan_from"),
        of_orders("legs", "HiPPO-LegS, bilinear map", _dense, (16, 33), along="scan"),
    ),
    **dict.fromkeys(
        (
            "diagonal_ssm",
            "diagonal_ssm_stateful",
            "diagonal_ssm_real",
            "diagonal_ssm_real_stateful",
        ),
        SYSTEMS,
    ),
    "diagonal_ssm_bidirectional": of_orders("lru", RINGS, _layer(_both_ways), (16,), along="scan"),
    **dict.fromkeys(("diagonal_ssm_varying", "diagonal_ssm_varying_stateful"), VARYING),
}
