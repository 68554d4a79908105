"""Presets of HiPPO's projections: its measures, with a step of one over the length."""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders

MEASURES = {"legt": "HiPPO-LegT", "lagt": "HiPPO-LagT"}


def _projecting(name):
    def draw(rng, sizes):
        system = initial.dense(name, n=sizes["n"])
        return {**system, "u": initial.normal(rng, (sizes["l"],)), "dt": np.array(1 / sizes["l"])}

    return draw


def _rescaled(rng, sizes):
    n = sizes["n"]
    return {**initial.dense("legs", n=n), "s": np.sqrt(2 * np.arange(n) + 1.0)}


PRESETS = {
    "hippo_project": tuple(
        preset
        for name, words in MEASURES.items()
        for preset in of_orders(name, words, _projecting(name), (16, 33), along="scan")
    ),
    "hippo_rescale": of_orders("legs", "HiPPO-LegS, scales √(2n + 1)", _rescaled, (16, 64)),
}
