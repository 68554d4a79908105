"""Planted bugs in the VJPs of layers: each gradient detached, conjugated or without its factor."""

from __future__ import annotations

import numpy as np

from refssm.conformance.planted.layers.every_layer import layers, planting
from refssm.conformance.planted.planting import of_each_result


def one_of_batch(right, dy, u, *parameters):
    """The gradients of the parameters from the first member of the batch only."""
    return right(dy, u, *parameters)[0], *right(dy[:1], u[:1], *parameters)[1:]


def of_logarithm(place: int):
    """The gradient of e^x in place of that of x."""

    def program(right, dy, *args):
        gradients = list(right(dy, *args))
        gradients[place] = gradients[place] / np.exp(args[place])
        return tuple(gradients)

    return program


ALL = [
    ("detached_u", "the gradient stops before the input", {"u": np.zeros_like}),
    ("halved", "half of every gradient", of_each_result(lambda g: g / 2)),
    ("late", "the cotangent of the step before", {"dy": lambda dy: np.roll(dy, 1, -2)}),
    ("one_of_batch", "the parameters' gradients from one member of the batch", one_of_batch),
]

BUGS = []
for _layer in layers():
    _bugs = planting(f"{_layer}_layer")
    _rows = [*ALL]
    for _i, (_name, _domain) in enumerate(_bugs.op.inputs.items()):
        if _name == "u":
            continue
        _rows.append((f"detached_{_name}", f"no gradient of `{_name}`", {_name: np.zeros_like}))
        if _domain.kind == "complex":
            _what = f"the other convention: d{_name}*"
            _rows.append((f"conjugate_{_name}", _what, {_name: np.conj}))
        if _name.startswith("log_"):
            _rows.append((f"factor_{_name}", f"`{_name}` as if it were e^x", of_logarithm(_i)))
    _bugs.plant(*_rows, by="gradient")
    BUGS += _bugs.bugs
