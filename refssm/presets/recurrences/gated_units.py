"""Presets of gated units: gates as models start and train them, and regimes that hide a carry."""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders, without

GATE_MIN, GATE_MAX = 0.9, 0.999  # of RecurrentGemma's decays with an open gate, before the power 8


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _rate_logits(rng, n):
    """log(1/a − 1) with a² uniform between 0.9² and 0.999² [botev2024recurrentgemma]."""
    a = np.sqrt(rng.uniform(GATE_MIN**2, GATE_MAX**2, n))
    return np.log(1 / a - 1)


def _real_gated(gates, logits=_rate_logits):
    """Arguments of RG-LRU from (rng, steps, n): gates of the decay; and rates from (rng, n)."""

    def draw(rng, sizes):
        n, over = sizes["n"], (sizes["l"],) if "l" in sizes else ()
        drawn = {"u": initial.normal(rng, (*over, n)), "r": gates(rng, over, n)}
        drawn |= {"i": _sigmoid(initial.normal(rng, (*over, n))), "a_param": logits(rng, n)}
        drawn |= {name: initial.state(rng, (n,)) for name in ("x0", "x")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _open(rng, over, n):
    return _sigmoid(initial.normal(rng, (*over, n)))


def _trained(rng, over, n):
    """Logits of standard deviation 4: some gates shut to 1e-5, some open."""
    return _sigmoid(4 * initial.normal(rng, (*over, n)))


def _lasting(rng, over, n):
    """Decays of 1 − 1e-6 or so: 1 − a² has no digits in single precision."""
    return np.full((*over, n), 1e-4)


def _cliff(rng, over, n):
    """Shut, and one step in the middle open."""
    r = np.full((*over, n), 1e-4)
    r[over[0] // 2 if over else slice(None)] = 1.0
    return r


def _fast(rng, n):
    """Rates of 5 to 10: an open gate forgets all."""
    return rng.uniform(5, 10, n)


def _minimal(logits):
    """Arguments of minGRU from (rng, steps, n): gates before the logistic function."""

    def draw(rng, sizes):
        n, over = sizes["n"], (sizes["l"],) if "l" in sizes else ()
        drawn = {"k": logits(rng, over, n), "h": initial.normal(rng, (*over, n))}
        drawn |= {name: initial.state(rng, (n,)) for name in ("x0", "x")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _normal(rng, over, n):
    return initial.normal(rng, (*over, n))


def _shut(rng, over, n):
    """z = 1e-4: states last over ten thousand steps."""
    return np.full((*over, n), -9.0)


def _trained_logits(rng, over, n):
    return 5 * initial.normal(rng, (*over, n))


def _one_opens(rng, over, n):
    k = np.full((*over, n), -9.0)
    k[over[0] // 2 if over else slice(None)] = 20.0
    return k


REAL = tuple(
    preset
    for name, summary, draw, orders in (
        ("griffin", "gates as RecurrentGemma starts", _real_gated(_open), (16, 64)),
        ("trained", "gates far beyond those of the start", _real_gated(_trained), (16,)),
        ("lasting", "nothing forgotten", _real_gated(_lasting), (16,)),
        ("cliff", "one step forgets all", _real_gated(_cliff, _fast), (16,)),
    )
    for preset in of_orders(name, summary, draw, orders, along="scan")
)
MINIMAL = tuple(
    preset
    for name, summary, draw, orders in (
        ("mingru", "gates as minGRU starts", _minimal(_normal), (16, 64)),
        ("trained", "gates far beyond those of the start", _minimal(_trained_logits), (16,)),
        ("lasting", "nothing forgotten", _minimal(_shut), (16,)),
        ("cliff", "one step forgets all", _minimal(_one_opens), (16,)),
    )
    for preset in of_orders(name, summary, draw, orders, along="scan")
)
FORMS = ("", "_from", "_packed", "_step")
PRESETS = {
    **{f"rg_lru{form}": REAL for form in FORMS},
    **{f"rg_lru_unscaled_start{form}": REAL for form in ("", "_packed")},
    "rg_lru_packed_from": without("x0", REAL),
    **{f"min_gru{form}": MINIMAL for form in FORMS},
    "min_gru_packed_from": without("x0", MINIMAL),
}
