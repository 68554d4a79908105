"""Presets of SSD: the heads of Mamba-2 as they start, and with a wider range of gates.

Its whole call has the same heads before the softplus: A = −(1 … 16), D = 1, biases whose softplus
is 1e-3 to 1e-1. Trained heads have rates from 1e-3 to 300, and their steps spread by a factor of
e^3 to both sides.
"""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders, without


def _drawing(gates):
    def draw(rng, sizes):
        n, p, over = sizes["n"], sizes["p"], (sizes["l"],) if "l" in sizes else ()
        log_a, dt = gates(rng, over)
        drawn = {"x": dt[..., None] * initial.normal(rng, (*over, p)), "log_a": log_a}
        drawn |= {"B": initial.normal(rng, (*over, n)), "C": initial.normal(rng, (*over, n))}
        drawn |= {name: initial.state(rng, (p, n)) for name in ("S0", "S")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _calling(rate, spread):
    """The arguments of `mamba2_scan`; `rate(rng)` is −A of the head."""

    def draw(rng, sizes):
        n, p, over = sizes["n"], sizes["p"], (sizes["l"],) if "l" in sizes else ()
        drawn = {"x": initial.normal(rng, (*over, p)), "z": initial.normal(rng, (*over, p))}
        drawn |= {"dt": spread * initial.normal(rng, over), "dt_bias": initial.step_biases(rng, ())}
        drawn |= {"A": np.asarray(-rate(rng)), "D": np.ones(())}
        drawn |= {"B": initial.normal(rng, (*over, n)), "C": initial.normal(rng, (*over, n))}
        drawn |= {name: initial.state(rng, (p, n)) for name in ("S0", "S")}
        return drawn | {"resets": initial.packed(rng, over)}

    return draw


def _starting(rng):
    return rng.uniform(initial.HEAD_MIN, initial.HEAD_MAX)


def _trained(rng):
    return np.exp(rng.uniform(np.log(1e-3), np.log(300)))


CALL = of_orders(
    "mamba2", "a head of Mamba-2, softplus to gate", _calling(_starting, 1), (16, 64), along="scan"
)
CALL_TRAINED = of_orders(
    "mamba2-trained",
    "rates and steps far beyond those of the start",
    _calling(_trained, 3),
    (16,),
    along="scan",
)
START = of_orders("mamba2", "a head of Mamba-2", _drawing(initial.heads), (16, 64), along="scan")
TRAINED = of_orders(
    "mamba2-trained",
    "gates far beyond those of the start",
    _drawing(initial.trained_heads),
    (16,),
    along="scan",
)
FORMS = (
    *("chunked", "chunked_packed", "chunked_stateful", "chunked_states", "quadratic", "step"),
    *("recurrent", "recurrent_packed", "recurrent_stateful", "recurrent_states"),
    "recurrent_reversed",
)
# of two long lengths each has every second preset: one has the slow gates of trained heads
HEADS = (START[0], *TRAINED, *START[1:])
CALLS = (CALL[0], *CALL_TRAINED, *CALL[1:])
PRESETS = {
    **{f"mamba2_{form}": CALLS for form in ("scan", "scan_packed", "scan_stateful", "scan_states")},
    "mamba2_scan_packed_stateful": without("S0", CALLS),
    "mamba2_step": CALLS,
    **{f"ssd_{form}": HEADS for form in FORMS},
    **{f"ssd_{kind}_packed_stateful": without("S0", HEADS) for kind in ("recurrent", "chunked")},
}
