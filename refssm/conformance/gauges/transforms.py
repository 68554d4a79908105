"""The error bounds of the contracts FFT and SPECTRUM."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.gauges.gauge import Gauge, Gauges, TrackedCall, wide
from refssm.conformance.gauges.linalg import TRANSFORMS
from refssm.conformance.gauges.rules import tree


def of_transform(call: TrackedCall) -> Gauges:
    """The bound 3 √log2(2l) Π‖argument‖₂ for every entry.

    Arguments in which the operator is jointly linear add their norms, as one factor.
    """
    op, norms, length = call.op, _norms_by_name(call), _length(call)
    assert op.definition is not None
    with np.errstate(all="ignore"):
        y = op.definition(*wide(call.arrays), **call.statics)
    product = _product(*(sum(norms[n] for n in group.arguments) for group in op.linear_in))
    return (_normwise(y, _transform_charge(length) * product, product, length),)


def of_transform_gradients(call: TrackedCall, vjp: Callable) -> Gauges:
    """As `of_transform`, with the cotangent's norm in place of the norm of the argument itself."""
    op, norms, length = call.op, _norms_by_name(call), _length(call)
    charge, gauged = _transform_charge(length), []
    with np.errstate(all="ignore"):
        gradients = vjp(*wide(call.arrays), **call.statics)
    for name, gradient, primal in zip(op.inputs, gradients, call.arrays[1:], strict=True):
        groups = [group.arguments for group in op.linear_in if name not in group.arguments]
        others = [sum(norms[n] for n in group) for group in groups]
        product = _product(_norm_along(call.arrays[0]), *others, np.ones_like(norms[name]))
        product = np.broadcast_to(product, (*product.shape[:-1], primal.shape[-1]))
        summed = unbroadcast(product, np.real(primal))
        terms = product.size // max(1, summed.size)
        gauged.append(_normwise(gradient, (charge + tree(terms)) * summed, summed, length))
    return tuple(gauged)


def _norms_by_name(call: TrackedCall) -> dict[str, Any]:
    """The 2-norm of each argument along time; cotangents, the first arrays, are left out."""
    primals = call.arrays[len(call.arrays) - len(call.op.inputs) :]
    return dict(zip(call.op.inputs, map(_norm_along, primals), strict=True))


def _norm_along(array):
    """‖array‖₂ along the last axis, kept with length 1."""
    (array,) = wide([array])
    with np.errstate(all="ignore"):
        return np.sqrt((np.abs(array) ** 2).sum(-1, keepdims=True))


def _length(call: TrackedCall) -> int:
    """The longest signal: a keyword may say how long the output is."""
    length = call.statics.get(call.op.leading, 1)
    return max(1, length, *(array.shape[-1] for array in call.arrays))


def _transform_charge(length):
    return TRANSFORMS * np.sqrt(np.log2(2 * length))


def of_spectrum(call: TrackedCall) -> Gauges:
    """One bound for all of a slice: the tracked error of the spectrum plus that of the transform.

    If the operator has a definition, it returns a kernel, the inverse transform of the definition's
    spectrum: an entry errs by at most the mean of the errors at the nodes, plus log2(2l) ‖K‖₂.
    Otherwise it returns a spectrum: the largest error of any node, plus log2(2l) root mean squares.
    """
    op, statics = call.op, call.statics
    length = max(1, statics[op.leading])
    transform = np.log2(2 * length)
    if op.definition is None:
        (gauge,) = call.tracked(op.reference)
        most = {k: _largest(getattr(gauge, k), 1) for k in ("k0", "k1")}
        more = transform * _mean_square(gauge.value)
    else:
        (made,) = call.tracked(op.definition)
        with np.errstate(all="ignore"):
            K = op.reference(*wide(call.arrays), **statics)
        gauge = Gauge(K, K.real, K.real, made.peak, normwise=True)
        most = {k: _mean(getattr(made, k)) for k in ("k0", "k1")}
        more = transform * np.sqrt(length) * _mean_square(K)
    least = np.maximum(np.abs(gauge.value), call.floor)
    bounds = {k: np.maximum(least, m + more) for k, m in most.items()}
    return (replace(gauge, **bounds),)


def of_spectrum_gradients(call: TrackedCall, vjp: Callable) -> Gauges:
    """The tracked errors of the VJP; every entry of a gradient's slice has the largest of them.

    A transform of the cotangent spreads its norm over all entries, so each cotangent entry counts
    with at least the root mean square of all.
    """
    (dk,), primals = call.arrays[:1], call.arrays[1:]
    size = np.abs(dk).astype(float)
    raised = np.maximum(size, _mean_square(size))
    unit_of = np.where(size > 0, dk / np.where(size > 0, size, 1), 1)
    made = call.tracked(vjp, [unit_of * raised, *primals])
    with np.errstate(all="ignore"):
        values = vjp(*wide(call.arrays), **call.statics)
    gauged = []
    for value, gauge, dims in zip(values, made, call.op.input_dims, strict=True):
        fields = {k: _largest(getattr(gauge, k), len(dims)) for k in ("k0", "k1")}
        gauged.append(replace(gauge, value=value, normwise=True, **fields))
    return tuple(gauged)


def _largest(k, rank):
    """The largest over the last `rank` axes, broadcast back to the shape of k."""
    axes = tuple(range(-rank, 0))
    return np.broadcast_to(k.max(axes, keepdims=True, initial=0.0), k.shape) if rank else k


def _mean(k):
    """The mean along the last axis, over all nodes of the definition, which may be more than l."""
    return k.sum(-1, keepdims=True) / max(1, k.shape[-1])


def _mean_square(x):
    """√(Σ|x|²/l) along the last axis."""
    count = max(1, x.shape[-1])
    with np.errstate(all="ignore"):
        return np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True) / count)


def _product(*factors):
    """The product of arrays that broadcast."""
    return np.prod(np.broadcast_arrays(*factors), axis=0)


def _normwise(value, k0, product, length) -> Gauge:
    """One bound for every entry; k1 adds 2 Π‖argument‖₂ for inputs off by one rounding each."""
    k0, k1 = (np.broadcast_to(k, value.shape) for k in (k0, k0 + 2 * product))
    peak = length * float(np.max(product, initial=0.0, where=np.isfinite(product)))
    return Gauge(value, k0, k1, peak)
