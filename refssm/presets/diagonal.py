"""Presets of diagonal kernels: the poles of S4D and DSS, and averages with constant decays."""

import numpy as np

from refssm import initial
from refssm.discretize import discretize_diagonal_bilinear
from refssm.presets.preset import Preset, of_orders

POLES = {
    "lin": "S4D-Lin, w = −½ + iπj",
    "inv": "S4D-Inv, Im w as 1/j",
    "legs": "S4D-LegS, poles of the normal part of HiPPO-LegS",
    "real": "S4D-Real, w = −(1 … n)",
}


def orders_of(name) -> tuple[int, ...]:
    """Numbers of poles; of real ones, the few presets of real types, one that no block divides."""
    return (16, 64, 65) if name == "real" else (16, 64)


def of_poles(names=tuple(POLES), *, B=True):
    """S4D's poles, one of each conjugate pair, normal C, real where the poles are."""
    return tuple(
        preset
        for name in names
        for preset in of_orders(f"s4d-{name}", POLES[name], _drawing(name, B), orders_of(name))
    )


def residues(rng, name, n):
    """A normal number for each pole, real where the poles are."""
    return (initial.normal if name == "real" else initial.complex_normal)(rng, (n,))


def _drawing(name, B):
    def draw(rng, sizes):
        system = initial.diagonal(name, n=sizes["n"])
        kept = system if B else {"w": system["w"]}
        C = residues(rng, name, sizes["n"])
        return {**kept, "C": C, "dt": initial.steps(rng, ())}

    return draw


def _averages(rng, sizes):
    return initial.averages(rng, n=sizes["n"])


def _slow_averages(rng, sizes):
    return initial.slow_averages(rng, n=sizes["n"])


def _liquid(name):
    def draw(rng, sizes):
        system = initial.diagonal(name, n=sizes["n"])
        w, B, dt = system["w"], system["B"][:, None], initial.steps(rng, ())
        a, B = discretize_diagonal_bilinear(w, B, np.full(w.shape, dt))
        return {"a": a, "B": B[:, 0], "C": residues(rng, name, sizes["n"])}

    return draw


def _shift(rng, sizes):
    n = sizes["n"]
    return {"B": np.eye(n)[0], "C": initial.normal(rng, (n,))}


DSS = of_poles(B=False, names=("legs", "lin"))
PRESETS = {
    "diagonal_kernel_zoh": of_poles(),
    "diagonal_kernel_bilinear": of_poles(),
    "diagonal_kernel_zoh_real": of_poles(),
    "diagonal_kernel_bilinear_real": of_poles(),
    "dss_exp_kernel": DSS,
    "dss_softmax_kernel": DSS,
    "ema_kernel": (
        Preset("averages", "decays 0.4 to 0.95, the same at every step", _averages, {"n": 16}),
        Preset("slow-averages", "decays 0.99 to 0.999999", _slow_averages, {"n": 16}),
    ),
    "liquid_kernel": tuple(
        preset
        for name in ("legs", "real")
        for preset in of_orders(
            f"s4d-{name}", f"{POLES[name]}, bilinear map", _liquid(name), orders_of(name)
        )
    ),
    "shift_kernel": of_orders("h3", "shift of H3, B = e₁, normal C", _shift, (64,)),
}
