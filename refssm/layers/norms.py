"""Norms as parts of a model: parameters, forward and VJP under one form each.

`forward(p, x)` and `vjp(dy, p, x)` take the parameters by name. A norm over the batch also has
averages for use after training, which its update returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refssm.layers import mixing

MOMENTUM = 0.1  # share of a new batch in the averages: PyTorch's usual number


@dataclass(frozen=True)
class Norm:
    """One norm: how it starts, and its functions."""

    name: str
    init: Callable[[int], dict[str, np.ndarray]]
    forward: Callable
    vjp: Callable


def _scale_and_shift(h):
    return {"scale": np.ones(h), "shift": np.zeros(h)}


def _layer_vjp(dy, p, x):
    dx, dscale, dshift = mixing.layer_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale, "shift": dshift}, dx


def _rms_vjp(dy, p, x):
    dx, dscale = mixing.rms_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale}, dx


def _batch_vjp(dy, p, x):
    dx, dscale, dshift = mixing.batch_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale, "shift": dshift}, dx


NORMS = {
    "layer": Norm(
        "layer", _scale_and_shift,
        lambda p, x: mixing.layer_norm(x, p["scale"], p["shift"]), _layer_vjp,
    ),
    "rms": Norm(
        "rms", lambda h: {"scale": np.ones(h)},
        lambda p, x: mixing.rms_norm(x, p["scale"]), _rms_vjp,
    ),
    "batch": Norm(
        "batch", _scale_and_shift,
        lambda p, x: mixing.batch_norm(x, p["scale"], p["shift"])[0], _batch_vjp,
    ),
}  # fmt: skip
