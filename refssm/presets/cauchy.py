"""Presets of Cauchy kernels and resolvents: the nodes and residues of S4 and S4D."""

import numpy as np

from refssm import initial
from refssm.presets.diagonal import POLES
from refssm.presets.preset import of_orders

MEASURES = {"legs": "HiPPO-LegS as NPLR", "lagt": "HiPPO-LagT as NPLR"}


def _nodes(l, dt):
    """z = (2/dt)(1 − ω)/(1 + ω) at l of the 2l + 1 roots of unity, none of which is −1."""
    return 2j / dt * np.tan(np.pi * np.arange(l) / (2 * l + 1))


def _of_measure(name, half=False):
    def draw(rng, sizes):
        n = sizes["n"]
        system = initial.dplr(name, n=2 * n if half else n)
        w, C = system["w"], initial.real_outputs(rng, system["V"], 1)[0]
        kept = np.argsort(-w.imag, kind="stable")[:n] if half else np.arange(n)
        return _sums(w[kept], (C * system["B"])[kept], sizes["l"], initial.steps(rng, ()))

    return draw


def _of_poles(name):
    def draw(rng, sizes):
        n = sizes["n"]
        w, v = initial.diagonal(name, n=n)["w"], initial.complex_normal(rng, (n,))
        return _sums(w, v, sizes["l"], initial.steps(rng, ()))

    return draw


def _sums(w, v, l, dt):
    return {"v": v, "w": w, "z": _nodes(l, dt)}


def _discrete(name):
    def draw(rng, sizes):
        n = sizes["n"]
        w, dt = initial.diagonal(name, n=n)["w"], initial.steps(rng, ())
        return {"v": initial.complex_normal(rng, (n,)) * dt, "a": np.exp(dt * w)}

    return draw


def _ring(rng, sizes):
    unit = initial.lru(rng, n=sizes["n"], m=1, p=1, r_min=0.9, r_max=0.999)
    return {"v": unit["C"][0] * unit["B"][:, 0] * unit["gamma"], "a": unit["a"]}


OF_MEASURES = tuple(
    preset
    for name, words in MEASURES.items()
    for preset in of_orders(name, words, _of_measure(name))
)
OF_HALVES = tuple(
    preset
    for name, words in MEASURES.items()
    for preset in of_orders(
        f"{name}-half", f"{words}, one mode of each pair", _of_measure(name, True), (8, 32, 128)
    )
)
OF_POLES = tuple(
    preset
    for name in ("lin", "inv")
    for preset in of_orders(f"s4d-{name}", POLES[name], _of_poles(name), (16, 64))
)
PRESETS = {
    "cauchy_kernel": (*OF_MEASURES, *OF_POLES),
    "cauchy_kernel_pairs": (*OF_HALVES, *OF_POLES),
    "resolvent_at_roots": (
        *of_orders("s4d-lin", POLES["lin"], _discrete("lin"), (16, 64)),
        *of_orders("s4d-inv", POLES["inv"], _discrete("inv"), (16, 64)),
        *of_orders("lru", "LRU's ring, moduli 0.9 to 0.999", _ring, (64,)),
    ),
}
