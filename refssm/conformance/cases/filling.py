"""NumPy fills an array by a knob: a map of the argument's domain, a texture, and real or complex.

Hypothesis does not draw single entries: it would repeat one fill value and keep arrays short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from refssm.conformance.cases import structured
from refssm.conformance.number_types import NumberType, number_type
from refssm.domains import Domain

MEDLEY = "medley"  # each channel has its own map or texture: many cases in one
NORMAL_MEDLEY = "medley of normal numbers"


@dataclass(frozen=True)
class Knob:
    """How one argument is filled: by which map and texture, and whether it is real."""

    map: str
    texture: str
    real: bool

    def __str__(self):
        return f"{self.map}/{self.texture}" + ("/real" if self.real else "")


def fill(domain: Domain, knob: Knob, shape, rank: int, rng, kind) -> np.ndarray:
    """An array of `domain`; the texture acts along the first core axis (axis −rank)."""
    kind = kind if isinstance(kind, NumberType) else number_type(kind)
    maps = list(domain.maps) if knob.map == MEDLEY else [knob.map]
    skipped = ("beside", "subnormal") if knob.texture == NORMAL_MEDLEY else ("beside",)
    textures = [t for t in domain.textures if t not in skipped]
    textures = textures if knob.texture in (MEDLEY, NORMAL_MEDLEY) else [knob.texture]
    channels = tuple(1 if i == len(shape) - rank and rank > 1 else n for i, n in enumerate(shape))
    which = rng.integers(len(maps) * len(textures), size=channels)
    values = np.zeros(shape, float if knob.real else complex)
    for i in np.unique(which):
        name, texture = maps[i % len(maps)], textures[i // len(maps)]
        a, b = _arranged(rng.random((2, *shape)), texture, rank)
        drawn = domain.draw(name, a, b, knob.real) * _kept(shape, texture, rank, rng, kind)
        drawn = structured.arranged(drawn, texture, rank, rng, kind)
        values = np.where(which == i, drawn, values)
    if domain.fit is not None:
        values = domain.fit(values)
    return values != 0 if domain.kind == "flag" else kind.rounded(values, knob.real)


def _arranged(draws, texture, rank):
    """Points of the unit square; some textures repeat them along the first core axis."""
    along = (..., slice(0, 1), *(slice(None),) * (rank - 1))  # the first position of that axis
    a, b = draws
    if rank == 0:
        return a, b
    if texture in ("constant", "channel"):
        a = np.broadcast_to(a[along], a.shape)
    if texture == "constant":
        b = np.broadcast_to(b[along], b.shape)
    return a, b


def _kept(shape, texture, rank, rng, kind: NumberType):
    """The factor of the drawn values: a mask, a decay, or tiny/16 for subnormal numbers."""
    if texture == "gaps":
        return rng.random(shape) < 0.7
    if rank == 0 and texture != "subnormal":  # other textures need an axis
        return 1.0
    if texture in ("impulse", "late"):
        length = shape[-rank]
        place = length - 1 - rng.integers(2) if texture == "late" else rng.integers(max(length, 1))
        return (np.arange(length) == max(place, 0)).reshape(length, *(1,) * (rank - 1))
    if texture == "fading":  # down to 1e-30 over the whole length
        length = shape[-rank]
        decay = np.exp(-69 * rng.random() * np.arange(length) / max(length, 1))
        return decay.reshape(length, *(1,) * (rank - 1))
    if texture in ("diagonal", "lower"):
        i, k = np.indices(shape[-2:])
        return (i == k) if texture == "diagonal" else (i >= k)
    if texture == "cycle":  # one permutation matrix per member of the batch
        return np.argsort(rng.random(shape[:-1]))[..., None] == np.arange(shape[-1])
    return kind.tiny / 16 if texture == "subnormal" else 1.0


def beside(poles, nodes, rng) -> np.ndarray:
    """Nodes at distances 1e-6 to 0.1 from poles; none equals a pole."""
    near = poles.reshape(-1, poles.shape[-1])[0]
    if near.size == 0:
        return nodes
    chosen = near[np.arange(nodes.size) % near.size].reshape(nodes.shape)
    distance = 1e-6 * 1e5 ** rng.random(nodes.shape)
    z = (chosen + distance * np.exp(2j * np.pi * rng.random(nodes.shape))).astype(nodes.dtype)
    met = (z[..., None] == poles.ravel()).any(-1)
    return np.where(met, nodes, z)
