"""Norms as parts of a model: parameters, forward and VJP under one form each.

`forward(ops, p, x)` returns the output and what the batch showed: nothing, or mean and variance of
the batch. Their running averages take the batch's place after training, in
`fixed(ops, p, averages, x)`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from refssm.layers._frame import Ops

MOMENTUM = 0.1  # share of a new batch in the averages: PyTorch's usual number
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Norm:
    """One norm: how its parameters and its averages start, and its functions."""

    name: str
    init: Callable[[int], dict[str, np.ndarray]]
    averages: Callable[[int], dict[str, np.ndarray]]
    forward: Callable[[Ops, Arrays, np.ndarray], tuple[np.ndarray, dict[str, np.ndarray]]]
    fixed: Callable[[Ops, Arrays, Arrays, np.ndarray], np.ndarray]
    vjp: Callable[[Ops, np.ndarray, Arrays, np.ndarray], tuple[dict[str, np.ndarray], np.ndarray]]


def averaged(averages: Arrays, seen: Arrays) -> dict[str, np.ndarray]:
    """a ← a + 0.1 (seen − a) for every average."""
    return {n: a + a.dtype.type(MOMENTUM) * (seen[n] - a) for n, a in averages.items()}


def _scale_and_shift(h):
    return {"scale": np.ones(h), "shift": np.zeros(h)}


def _no_averages(h):
    return {}


def _layer(ops, p, x):
    return ops.layer_norm(x, p["scale"], p["shift"]), {}


def _layer_vjp(ops, dy, p, x):
    dx, dscale, dshift = ops.layer_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale, "shift": dshift}, dx


def _rms(ops, p, x):
    return ops.rms_norm(x, p["scale"]), {}


def _rms_vjp(ops, dy, p, x):
    dx, dscale = ops.rms_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale}, dx


def _batch(ops, p, x):
    """The variance for the averages is the unbiased one, as in PyTorch."""
    y, mean, variance = ops.batch_norm(x, p["scale"], p["shift"])
    count = x.size // x.shape[-1]
    return y, {"mean": mean, "variance": variance * x.dtype.type(count / max(1, count - 1))}


def _batch_fixed(ops, p, averages, x):
    return ops.batch_norm_fixed(x, p["scale"], p["shift"], averages["mean"], averages["variance"])


def _batch_vjp(ops, dy, p, x):
    dx, dscale, dshift = ops.batch_norm_vjp(dy, x, p["scale"])
    return {"scale": dscale, "shift": dshift}, dx


def _same(forward):
    """After training as in training."""
    return lambda ops, p, averages, x: forward(ops, p, x)[0]


NORMS = {
    "layer": Norm("layer", _scale_and_shift, _no_averages, _layer, _same(_layer), _layer_vjp),
    "rms": Norm("rms", lambda h: {"scale": np.ones(h)}, _no_averages, _rms, _same(_rms), _rms_vjp),
    "batch": Norm(
        "batch",
        _scale_and_shift,
        lambda h: {"mean": np.zeros(h), "variance": np.ones(h)},
        _batch,
        _batch_fixed,
        _batch_vjp,
    ),
}
