"""Presets of SSD: the heads of Mamba-2 as they start, and with a wider range of gates."""

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
PRESETS = {
    **{f"ssd_{form}": HEADS for form in FORMS},
    **{f"ssd_{kind}_packed_stateful": without("S0", HEADS) for kind in ("recurrent", "chunked")},
}
