"""Presets of DPLR kernels: the HiPPO measures of S4, all modes or one of each conjugate pair."""

import numpy as np

from refssm import initial
from refssm.presets.preset import of_orders

MEASURES = {"legs": 1, "legt": 2, "lagt": 1, "fourier": 1}
NAMES = {"legs": "LegS", "legt": "LegT", "lagt": "LagT", "fourier": "Fourier"}


def _drawing(name, half):
    def draw(rng, sizes):
        n = sizes["n"]
        system = initial.dplr(name, n=2 * n if half else n)
        w, P, B, V = (system[key] for key in "wPBV")
        kept = np.argsort(-w.imag, kind="stable")[:n] if half else np.arange(n)
        w = w - np.maximum(initial.RATE_FLOOR + w.real, 0)  # as `initial.rates_of` moves them
        C = initial.real_outputs(rng, V, 1)[0]
        P = P[:, : sizes["r"]]
        arrays = {"w": w, "P": P, "Q": P, "B": B, "C": C}
        return {key: a[kept] for key, a in arrays.items()} | {"dt": initial.steps(rng, ())}

    return draw


def _of(name, half, orders):
    ending, words = ("-half", ", one mode of each pair") if half else ("", "")
    words = f"HiPPO-{NAMES[name]} as NPLR{words}"
    return of_orders(name + ending, words, _drawing(name, half), orders, r=MEASURES[name])


WHOLE = tuple(preset for name in MEASURES for preset in _of(name, False, (16, 64, 256)))
SOME_HALVES = (*_of("legs", True, (32,)), *_of("fourier", True, (32,)))
HALVES = tuple(preset for name in MEASURES for preset in _of(name, True, (8, 32, 128)))
PRESETS = dict.fromkeys(("dplr_kernel", "dplr_kernel_aliased"), (*WHOLE, *SOME_HALVES))
PRESETS |= dict.fromkeys(("dplr_kernel_real", "dplr_kernel_aliased_real"), HALVES)
