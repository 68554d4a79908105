"""Presets of selective scans: Mamba's rates and steps, normal signals."""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders, without

WORDS = "Mamba, A = −(1 … n), steps 1e-3 to 1e-1"


def _signals(rng, sizes):
    """What every form receives; in a single step the signals have no time axis."""
    n, over = sizes["n"], (sizes["l"],) if "l" in sizes else ()
    drawn = {"u": initial.normal(rng, over), "A": initial.rates(n=n)}
    drawn |= {"B": initial.normal(rng, (*over, n)), "C": initial.normal(rng, (*over, n))}
    drawn |= {name: initial.state(rng, (n,)) for name in ("x0", "x")}
    return drawn | {"resets": initial.packed(rng, over)}


def _selective(rng, sizes):
    over = (sizes["l"],) if "l" in sizes else ()
    bias = initial.step_biases(rng, ())
    return _signals(rng, sizes) | {"dt": np.logaddexp(0, bias + initial.normal(rng, over))}


def _mamba(rng, sizes):
    over = (sizes["l"],) if "l" in sizes else ()
    drawn = {"dt": initial.normal(rng, over), "dt_bias": initial.step_biases(rng, ())}
    return _signals(rng, sizes) | drawn | {"D": np.ones(()), "z": initial.normal(rng, over)}


SELECTIVE = of_orders("mamba", WORDS, _selective, (16,), along="scan")
MAMBA = of_orders("mamba", WORDS, _mamba, (16,), along="scan")
FORMS = ("scan", "scan_packed", "scan_stateful", "scan_states", "scan_reversed", "step")
PRESETS = {
    **{f"selective_{form}": SELECTIVE for form in FORMS},
    **{f"mamba_{form}": MAMBA for form in FORMS},
    "selective_scan_packed_stateful": without("x0", SELECTIVE),
    "mamba_scan_packed_stateful": without("x0", MAMBA),
}
