"""Planted bugs in the states of layers: not read, not carried, one step old."""

from __future__ import annotations

import numpy as np

from refssm.conformance.planted.layers.every_layer import layers, planting


def returned(place: int, change):
    """The right outputs, but for one state: `change` of it and of the one that was given."""

    def program(right, *args):
        outputs = list(right(*args))
        count = len(outputs) - 1
        outputs[place] = change(outputs[place], args[len(args) - count + place - 1])
        return tuple(outputs)

    return program


def one_step_old(right, u, *rest):
    """The states before the last step."""
    y, *after = right(u, *rest)
    count = len(after)
    return (y, *right(u[..., :-1, :], *rest)[1:]) if u.shape[-2] else (y, *rest[-count:])


BUGS = []
for _layer in layers():
    if not _layer.states:
        continue
    _bugs = planting(f"{_layer}_layer_stateful")
    for _i, _name in enumerate(_layer.states, start=1):
        _bugs.plant(
            (f"{_name}_unread", f"the given `{_name}` is not read", {f"{_name}0": np.zeros_like}),
        )
        _bugs.plant(
            (f"{_name}_lost", f"`{_name}` starts again", returned(_i, lambda s, s0: 0 * s)),
            (f"{_name}_kept", f"`{_name}` does not change", returned(_i, lambda s, s0: s0 + 0 * s)),
            (f"{_name}_sign", f"`{_name}` with the other sign", returned(_i, lambda s, s0: -s)),
            by="state",
        )
        if _bugs.op.inputs[f"{_name}0"].kind == "complex":
            _bugs.plant(
                (f"{_name}_real", f"the real part of `{_name}`",
                 returned(_i, lambda s, s0: s.real + 0 * s)),
                by="state",
            )  # fmt: skip
    _bugs.plant(("one_step_old", "the states before the last step", one_step_old), by="state")
    BUGS += _bugs.bugs
