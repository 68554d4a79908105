"""Presets of discretizations: HiPPO's dense matrices and the diagonal blocks of S5."""

from refssm import initial
from refssm.presets.preset import of_orders

DENSE = ("backward", "bilinear", "euler", "foh", "gbt", "impulse", "mamba", "zoh")
MEASURES = {"legs": "HiPPO-LegS", "legt": "HiPPO-LegT"}


def _dense(name):
    def draw(rng, sizes):
        system = initial.dense(name, n=sizes["n"])
        return {"A": system["A"], "B": system["B"][:, None], "dt": initial.steps(rng, ())}

    return draw


def _diagonal(rng, sizes):
    n, m = sizes["n"], sizes["m"]
    system = initial.s5(rng, n=n, m=m, p=1)
    return {"w": system["w"], "B": system["B"], "dt": initial.steps(rng, (n,))}


def _rates(rng, sizes):
    n = sizes["n"]
    B = initial.normal(rng, (n, sizes["m"]))
    return {"w": initial.rates(n=n), "B": B, "dt": initial.steps(rng, (n,))}


OF_MATRICES = tuple(
    preset
    for name, words in MEASURES.items()
    for preset in of_orders(name, words, _dense(name), (16, 33), m=1)
)
OF_MODES = (
    *of_orders("s5", "modes of S5, one step for each", _diagonal, (16, 64)),
    *of_orders("mamba", "rates of Mamba, −(1 … n)", _rates, (16,)),
)
PRESETS = {
    **{f"discretize_{rule}": OF_MATRICES for rule in DENSE},
    **{f"discretize_diagonal_{rule}": OF_MODES for rule in DENSE},
}
