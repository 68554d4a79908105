"""Arguments, outputs and their bounds, restricted to a window of time steps."""

from __future__ import annotations

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.conformance.gauges.gauge import Gauge


def time_axes(op: Operator) -> list[int | None]:
    """For each input, the (negative) index of its time axis, `op.leading`, or None."""
    step = op.leading
    return [dims.index(step) - len(dims) if step in dims else None for dims in op.input_dims]


def timed(op: Operator) -> list[str]:
    """Names of the arguments that have a time axis."""
    return [name for name, axis in zip(op.inputs, time_axes(op), strict=True) if axis is not None]


def cut(op: Operator, arrays, window: slice) -> list[np.ndarray]:
    """The arguments restricted to the steps in `window`; those without a time axis stay whole.

    Offsets beyond its end become its end: sequences end there.
    """
    return [
        (np.minimum(a, window.stop) if name in op.offsets else a)
        if axis is None
        else a[(..., window, *(slice(None),) * (-axis - 1))]
        for name, a, axis in zip(op.inputs, arrays, time_axes(op), strict=True)
    ]


def shortened(op: Operator, arrays, dim: str, size: int) -> list[np.ndarray]:
    """The arguments cut to `size` entries along every axis `dim`, twice as many along an axis of
    twice `dim`; offsets lie within."""
    offsets = op.offsets if dim == op.leading else ()
    return [
        np.minimum(a, size) if name in offsets else a[(..., *(_cut(d, dim, size) for d in dims))]
        for name, a, dims in zip(op.inputs, arrays, op.input_dims, strict=True)
    ]


def _cut(axis: str, dim: str, size: int) -> slice:
    """`axis` is `dim`, a multiple of it such as "2n", or another one."""
    return slice(length_of(axis, {dim: size}) if axis.lstrip("123456789") == dim else None)


def in_window(op: Operator, y: np.ndarray, window: slice) -> np.ndarray:
    """The first output restricted to the steps in `window`."""
    return y[(..., window, *(slice(None),) * (len(op.output_dims[0]) - 1))]


def windowed(op: Operator, gauge: Gauge, window: slice) -> Gauge:
    """The gauge restricted to the steps in `window`."""
    return gauge.moved(lambda a: in_window(op, a, window))


def at_length(op: Operator, statics, k: int) -> dict:
    """The keyword arguments, changed so that the output has length k."""
    step = op.leading
    return {**statics, step: k} if step in op.static else dict(statics)
