# pyright: reportMissingImports=false
"""RecurrentGemma in PyTorch: `rnn_scan`, a loop over time, `RGLRU` around it, and `Conv1D`.

In bfloat16 `rnn_scan` accumulates in float32.
"""

import inspect
from types import FunctionType, SimpleNamespace

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


class TorchAfterGates:
    """PyTorch, with gates that are after their logistic function already."""

    @staticmethod
    def sigmoid(x):
        """A gate as it is."""
        return x

    def __getattr__(self, name):
        return getattr(torch, name)


FORWARD = inspect.unwrap(layers.RGLRU.forward)
GLOBALS = {**FORWARD.__globals__, "torch": TorchAfterGates()}
UNIT = FunctionType(FORWARD.__code__, GLOBALS, "unit", FORWARD.__defaults__)
FLOAT32 = {"framework": "torch", "vjp": True, "dtypes": ("float32",)}  # what it accumulates in
GATES = "b l n, b l n, b l n, n"


def unit(u, r, i, a_param, positions, cache=None):
    """RGLRU.forward without the projections of its gates."""
    given = SimpleNamespace(input_gate=lambda _: i, a_gate=lambda _: r, a_param=a_param)
    return UNIT(given, u, positions.expand(u.shape[:2]), cache)[0]


@implements("rg_lru", layout=f"{GATES} -> b l n", **FLOAT32)
def rg_lru(u, r, i, a_param):
    """RGLRU after position 0, with a cache of zeros."""
    return unit(u, r, i, a_param, 1 + torch.arange(u.shape[1]), torch.zeros_like(u[:, :1].sum(1)))


@implements("rg_lru_from", layout=f"{GATES}, b n -> b l n", **FLOAT32)
def rg_lru_from(u, r, i, a_param, x0):
    """RGLRU after position 0, with a cache."""
    return unit(u, r, i, a_param, 1 + torch.arange(u.shape[1]), x0)


@implements("rg_lru_step", layout="b n, b n, b n, n, b n -> b n", **FLOAT32)
def rg_lru_step(u, r, i, a_param, x):
    """RGLRU of one token after position 0: decoding."""
    return unit(u[:, None], r[:, None], i[:, None], a_param, torch.ones(1, 1), x)[:, 0]


@implements("rg_lru_unscaled_start", layout=f"{GATES} -> b l n", **FLOAT32)
def rg_lru_unscaled_start(u, r, i, a_param):
    """RGLRU from position 0."""
    return unit(u, r, i, a_param, torch.arange(u.shape[1]))


@implements("rg_lru_unscaled_start_packed", layout=f"{GATES}, b l -> b l n", **FLOAT32)
def rg_lru_unscaled_start_packed(u, r, i, a_param, resets):
    """RGLRU of several documents, each from position 0."""
    starts = resets != 0
    starts[:, :1] = True
    return unit(u, r, i, a_param, (~starts).to(torch.int64))
