# pyright: reportMissingImports=false
"""RecurrentGemma in PyTorch: `rnn_scan`, a loop over time, and `Conv1D`.

In bfloat16 `rnn_scan` accumulates in float32.
"""

import torch
from torch.func import functional_call

from refssm.subjects.clones import module
from refssm.testing import Budget, implements

layers = module("recurrentgemma", "recurrentgemma.torch.layers")

DECLARED = {"framework": "torch", "dtypes": ("float32", "float64")}
BFLOAT16 = {
    "framework": "torch",
    "dtypes": ("bfloat16",),
    "accuracy": Budget(computes="float32"),
}


def scanned(a, b, resets, h0=None):
    """rnn_scan, which accumulates in float32, or in float64 if it is told so."""
    wide = torch.promote_types(b.dtype, torch.float32)
    return layers.rnn_scan(b, a, resets, h0 if h0 is None else h0.type(wide), wide)


def none(b):
    """No resets."""
    return torch.zeros(b.shape[:2], dtype=torch.bool)


@implements("linear_scan", layout="b l n, b l n -> b l n", vjp=True, **DECLARED)
def rnn_scan(a, b):
    """rnn_scan without resets, from rest."""
    return scanned(a, b, none(b))[0]


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", vjp=True, **DECLARED)
def rnn_scan_from(a, b, x0):
    """rnn_scan without resets, from a state."""
    return scanned(a, b, none(b), x0)[0]


@implements("linear_scan_packed", layout="b l n, b l n, b l -> b l n", vjp=True, **DECLARED)
def rnn_scan_packed(a, b, resets):
    """rnn_scan with resets, from rest."""
    return scanned(a, b, resets)[0]


@implements("linear_step", layout="b n, b n, b n -> b n", vjp=True, **DECLARED)
def linear_step(a, b, x):
    """rnn_scan of one token, its sampling mode; the last state."""
    return scanned(a[:, None], b[:, None], none(b[:, None]), x)[1]


def two_taps(x):
    """The case, if it has two taps: with one the cache has no inputs, and it raises."""
    return x if x["k"].shape[-1] > 1 else None


def convolved(u, k, segments, cache=None):
    """Conv1D without a bias; its weights are the taps in reverse order."""
    width, taps = k.shape
    conv = layers.Conv1D(width, taps, device="meta")
    weights = {"w": torch.flip(k, (-1,)).T, "b": torch.zeros_like(k[:, 0])}
    return functional_call(conv, weights, (u, segments, cache))


@implements("short_convolution", layout="b l d, d t -> b l d", only=two_taps, **DECLARED)
def short_convolution(u, k):
    """Conv1D of one document for each member of the batch."""
    places = torch.arange(u.shape[1]).expand(u.shape[:2])
    return convolved(u, k, places)[0]


@implements(
    "short_convolution_step", layout="b d, d t, b t d -> b d, b t d", only=two_taps, **DECLARED
)
def short_convolution_step(u, k, s):
    """Conv1D of one token with its cache, which has the last inputs but the oldest."""
    y, cache = convolved(u[:, None], k, torch.ones(len(u), 1, dtype=torch.int64), s[:, 1:])
    return y[:, 0], torch.cat([s[:, 1:2], cache], 1)


@implements("linear_scan_packed", layout="b l n, b l n, b l -> b l n", **BFLOAT16)
def bfloat16_packed(a, b, resets):
    """rnn_scan in bfloat16, with resets, from rest."""
    return layers.rnn_scan(b, a, resets, None)[0]


@implements("linear_scan_from", layout="b l n, b l n, b n -> b l n", **BFLOAT16)
def bfloat16_from(a, b, x0):
    """rnn_scan in bfloat16, without resets, from a state in float32."""
    return layers.rnn_scan(b, a, none(b), x0.float())[0]
