"""Presets of Hankel operators: HiPPO-LegS, its bilinear map, S4D's modes, HOPE's parameters."""

import numpy as np

from refssm import initial
from refssm.presets import krylov
from refssm.presets.diagonal import POLES
from refssm.presets.preset import Preset, of_orders


def _continuous(rng, sizes):
    n = sizes["n"]
    system = initial.dense("legs", n=n)
    return {"A": system["A"], "B": system["B"], "C": initial.normal(rng, (n,))}


def _at_frequencies(rng, sizes):
    s = 1j * np.exp(rng.uniform(np.log(1e-2), np.log(1e3), sizes["l"]))
    return _continuous(rng, sizes) | {"D": np.ones(()), "s": s}


def _at_points(rng, sizes):
    z = np.exp(2j * np.pi * rng.random(sizes["l"]))
    return krylov.draw(rng, sizes) | {"D": np.ones(()), "z": z}


def _parameters(rng, sizes):
    return {"h": initial.markov(rng, (sizes["n"],))}


def _modes(rng, sizes):
    n = sizes["n"]
    return {**initial.diagonal("lin", n=n), "C": initial.complex_normal(rng, (n,))}


LEGS, MAPPED = "HiPPO-LegS", "HiPPO-LegS, bilinear map"
PRESETS = {
    "gramians": of_orders("legs", LEGS, _continuous, (16, 33)),
    "gramians_discrete": of_orders("legs", MAPPED, krylov.draw, (16, 33)),
    "h2_norm": of_orders("legs", LEGS, _continuous, (16, 33)),
    "h2_norm_diagonal": of_orders("s4d-lin", POLES["lin"], _modes, (64,)),
    "hankel_matrix": (Preset("hope", "HOPE's parameters", _parameters, {"n": 64}),),
    "hankel_singular_values": of_orders("legs", LEGS, _continuous, (8, 16)),
    "hankel_singular_values_diagonal": of_orders("s4d-lin", POLES["lin"], _modes, (8,)),
    "markov_parameters": of_orders("legs", MAPPED, krylov.draw, (16, 64)),
    "transfer": of_orders("legs", LEGS, _at_frequencies, (16, 33), along="points"),
    "transfer_discrete": of_orders("legs", MAPPED, _at_points, (16, 33), along="points"),
}
