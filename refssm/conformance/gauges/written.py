"""Gauges as arrays, to keep them on disk."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from refssm.conformance.gauges.contracts import distance
from refssm.conformance.gauges.gauge import Gauge, Gauges, KnownBound, Measure


def packed(gauges: Gauges) -> dict[str, np.ndarray] | None:
    """Every field of every gauge, by place and name; None if a field is a function."""
    arrays = {}
    for j, gauge in enumerate(gauges):
        for field in fields(Gauge):
            value = getattr(gauge, field.name)
            if isinstance(value, Measure) and value.name == "error":  # the distance to the value
                if value.backward is not None:
                    arrays[f"{j}.backward"] = value.backward
                value = value.bound
            if isinstance(value, KnownBound):
                value = value.k1
            if isinstance(value, np.ndarray | np.generic | float | bool):
                arrays[f"{j}.{field.name}"] = np.asarray(value)
            elif value is not None:
                return None
    return arrays


def unpacked(arrays: Mapping[str, np.ndarray]) -> Gauges:
    """The gauges again."""
    found: dict[str, dict[str, Any]] = {}
    for name, a in arrays.items():
        place, _, field = name.partition(".")
        found.setdefault(place, {})[field] = a if a.ndim or field in ARRAYS else a.item()
    for told in found.values():
        if "measure" in told:
            backward, of = told.pop("backward", None), distance(told["value"])
            told["measure"] = Measure("error", of, told["measure"], backward)
        if "derive" in told:
            told["derive"] = KnownBound(told["derive"])
    return tuple(Gauge(**told) for told in found.values())


ARRAYS = ("value", "k0", "k1", "measure", "backward", "derive")  # also if they have no axes
