"""Presets of norms: heads of Gated DeltaNet, Mamba-2's channels, unit queries and keys."""

from refssm import initial
from refssm.presets.preset import Preset


def _gated(rng, sizes):
    """Outputs of a head, its gates, and weights near 1 as after training."""
    n = sizes["n"]
    drawn = {name: initial.normal(rng, (n,)) for name in ("x", "z")}
    return {**drawn, "w": 1 + 0.2 * initial.normal(rng, (n,))}


def _silent(rng, sizes):
    """Outputs of a state that has decayed: ε is larger than their squares."""
    drawn = _gated(rng, sizes)
    return {**drawn, "x": 1e-4 * drawn["x"]}


def _massive(rng, sizes):
    """One channel a thousand times as large as the others, as in trained models."""
    drawn = _gated(rng, sizes)
    drawn["x"][0] *= 1e3
    return drawn


HEAD, CHANNELS = "a head of Gated DeltaNet, 128 channels", "Mamba-2's channels, 192 of them"
KEYS = "a key of 128 channels"


def _three(words, n, *names):
    kinds = {
        "usual": (words, _gated),
        "silent": (f"{words}, smaller than √ε", _silent),
        "massive": (f"{words}, one of them 1e3 times as large", _massive),
    }

    def only(draw):
        return lambda rng, sizes: {k: a for k, a in draw(rng, sizes).items() if k in names}

    return tuple(
        Preset(name, said, only(draw), {"n": n}, "scan") for name, (said, draw) in kinds.items()
    )


PRESETS = {
    "rms_norm_gated": _three(HEAD, 128, "x", "z", "w"),
    "gated_rms_norm": _three(CHANNELS, 192, "x", "z", "w"),
    "l2_norm": _three(KEYS, 128, "x"),
}
