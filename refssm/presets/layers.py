"""Presets of layers: the parameters with which training starts, from each layer's `init`."""

import inspect
from collections.abc import Callable

from refssm.layers.catalog import LAYERS
from refssm.presets.preset import Preset

WIDTH = 4  # h: channels of the layer
SIZES = {"n": 16, "d": 8}  # states, and hidden units of `hippo_rnn`
FIXED = {  # what `init` makes of them
    "s4": {"r": 1},
    "mamba": {"e": 8, "r": 1, "t": 4},
    "linear_attention": {"g": 4, "p": 16},
    "retnet": {"g": 4},
    "mamba2": {"g": 1, "p": 16, "t": 4},
    "gated_deltanet": {"g": 4, "p": 16, "t": 4},
    "attention": {"g": 4, "p": 16, "t": 64},
    "bigbird": {"g": 4, "p": 16, "t": 64},
    "long_convolution": {"t": 64},
    "h3": {"g": 4, "p": 1, "t": 64},
    "gss": {"m": 1, "e": 16},
    "rglru": {"g": 1, "p": 8, "t": 4},
    "spectral_ssm": {"t": 64},
}


def _drawing(layer) -> Callable:
    chosen = [name for name in SIZES if name in inspect.signature(layer.init).parameters]

    def draw(rng, sizes):
        given = {name: sizes[name] for name in chosen}
        return layer.init(rng, h=sizes["h"], **given).arrays()

    return draw


def _preset(layer) -> Preset:
    keywords = inspect.signature(layer.init).parameters
    sizes = {"h": WIDTH, **{name: n for name, n in SIZES.items() if name in keywords}}
    sizes |= FIXED.get(layer.name, {})
    words = "parameters with which training starts"
    return Preset("start", words, _drawing(layer), sizes, along="scan")


PRESETS = {
    f"{layer.name}_layer{form}": (_preset(layer),)
    for layer in LAYERS
    if layer.judged
    for form in ("", "_stateful")[: 1 + layer.causal]
}
