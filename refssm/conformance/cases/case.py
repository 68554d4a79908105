"""A case: sizes, a few named knobs and one seed, from which its arrays are made.

Values are drawn in double precision and rounded to the type of the case. The rounded values are the
exact inputs of the implementation and of the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.conformance.cases.kinds import structured
from refssm.conformance.cases.partners import following
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.cases.stacking import stacked
from refssm.conformance.number_types import NumberType, number_type
from refssm.domains import DISCRETE, Domain
from refssm.presets.preset import Preset

NOWHERE: Mapping = MappingProxyType({})
EXACT_MAPS = frozenset({"one", "integer", "compass"})


@dataclass(frozen=True, eq=False)
class Case:
    """Sizes, knobs and a seed: all that determines the arrays of one example."""

    op: Operator
    dtype: np.dtype
    sizes: Mapping[str, int]  # core dimensions by name
    batch: Mapping[str, int]
    knobs: Mapping[str, Knob]
    seed: int
    half: NumberType | None = None  # the judged type if NumPy lacks it; float32 arrays hold it
    parameters: Mapping[str, int | float] = field(default_factory=dict)
    preset: Preset | None = None  # draws the arguments that have no knob

    def __post_init__(self):
        """A number that must divide a size becomes that size where it does not divide it."""
        object.__setattr__(self, "parameters", self.op.fitted(self.parameters, self.sizes))

    def __str__(self):
        told = [f"preset {self.preset}:"] * (self.preset is not None)
        told += [f"{d}={n}" for d, n in {**self.sizes, **self.parameters}.items()]
        told += [f"batch {d}={n}" for d, n in self.batch.items() if n > 1]
        told += [f"{name}:{knob}" for name, knob in self.knobs.items()]
        return " ".join([*told, f"seed={self.seed}"])

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """The arguments in order, with values of the judged type."""
        arrays: dict[str, np.ndarray] = {}
        kind = self.type
        drawn = self._of_preset() if self.preset else {}
        for i, (name, domain) in enumerate(self.op.inputs.items()):
            if name in drawn:
                real = domain.real or (kind.carrier.kind == "f" and domain.kind != "complex")
                exact = domain.kind in DISCRETE
                arrays[name] = drawn[name] if exact else kind.rounded(drawn[name], real)
                continue
            knob, rng = self.knobs[name], self.generator(i)
            rank = len(self.op.input_dims[i])
            arrays[name] = fill(domain, knob, self._shape(i), rank, rng, self.type)
            if knob.texture == "beside":
                arrays[name] = beside(arrays[domain.meets], arrays[name], rng)
            if domain.kind == "offsets":
                parts = arrays[name] * self.sizes[self.op.leading]
                arrays[name] = np.rint(parts).astype(np.int64)
            if domain.follows:
                arrays[name] = following(
                    arrays[domain.follows],
                    arrays[name],
                    self.type,
                    entry_by_entry=domain.entry_by_entry,
                )
        return list(arrays.values())

    def _of_preset(self) -> dict[str, np.ndarray]:
        """The arrays of the preset, in double precision, before they are rounded."""
        assert self.preset is not None
        return stacked(
            self.op,
            self.preset,
            self.sizes,
            self.batch,
            lambda *member: np.random.default_rng([self.seed, len(self.op.inputs), *member]),
        )

    @property
    def type(self) -> NumberType:
        """The judged number type."""
        return self.half or number_type(self.dtype)

    @property
    def statics(self) -> dict[str, int | float]:
        """The keyword arguments: parameters, and core dimensions that no input has."""
        sizes = {name: self.sizes[name] for name in self.op.static if name in self.sizes}
        return sizes | dict(self.parameters)

    def generator(self, stream: int) -> np.random.Generator:
        """A random generator that depends only on the case's seed and on `stream`."""
        return np.random.default_rng([self.seed, stream])

    def _shape(self, i):
        leading = [self.batch.get(d, 1) for d in self.op.batch_axes[i]]
        return (*leading, *(length_of(d, self.sizes) for d in self.op.input_dims[i]))

    @property
    def exact(self) -> bool:
        """True if every input is a small exact integer, so that sums and products do not round."""
        knobs = self.knobs.values()
        exact = all(k.map in EXACT_MAPS and k.texture != "subnormal" for k in knobs)
        return exact and bool(knobs) and self.preset is None


def simplest(op: Operator) -> dict[str, int | float]:
    """The first value of every parameter."""
    return {name: counts.values[0] for name, counts in op.parameters.items()}


PARAMETERS_TRIED = 4  # values of each parameter where an implementation declines the first


def ordinary_cases(op: Operator, dtype, sizes, between: Mapping = NOWHERE) -> Iterator[Case]:
    """The ordinary case, then those with the next values of its parameters, as of an even n."""
    counts = [counts.values for counts in op.parameters.values()]
    for k in range(min(PARAMETERS_TRIED, max(map(len, counts), default=1))):
        values = [v[k % len(v)] for v in counts]
        parameters = dict(zip(op.parameters, values, strict=True))
        yield ordinary_case(op, dtype, sizes, between=between, parameters=parameters)


def ordinary_case(
    op: Operator,
    dtype,
    sizes=(5, 3, 4, 2),
    seed=1,
    real=(),
    between: Mapping = NOWHERE,
    parameters: Mapping | None = None,
) -> Case:
    """A case without extreme values; batch axes have size 2, core dimensions `sizes` in order.

    Further core dimensions have the last of these sizes; `parameters` are the first values of each
    parameter if not given.
    """
    knobs, kind = {}, number_type(dtype)
    for name, domain in op.inputs.items():
        of_real = domain.real or name in real or kind.carrier.kind == "f"
        knobs[name] = Knob(plain_map(domain), domain.tame_textures[0], of_real)
    dims = core_dims(op)
    core = dict(zip(dims, [*sizes, *[sizes[-1]] * len(dims)], strict=False))
    parameters = dict(parameters or simplest(op))
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    if "r" in core:  # a norm bounds all states at once and hides small errors if l and n are large
        core |= {"r": 1} | {d: min(core[d], 5) for d in ("l", "n") if d in core}
    for dim, (low, high) in between.items():
        core |= {dim: int(min(max(core[dim], low), high))} if dim in core else {}
    batch, half = dict.fromkeys(op.batch_names, 2), kind if kind.half else None
    return Case(op, kind.carrier, core, batch, knobs, seed, half, parameters)


def plain_map(domain: Domain) -> str:
    """The first tame map that varies, with complex values if there is one; else the first tame map.

    A range of `--where` may leave one value: biases of −7 to −2 in a range of −2 to 0.
    """
    points = np.array([0.2, 0.9])
    drawn = {m: domain.draw(m, points, points, real=False) for m in domain.tame}
    varying = [m for m, (x, y) in drawn.items() if np.real(x) != np.real(y)]
    return next((m for m in varying if np.imag(drawn[m]).any()), [*varying, *domain.tame][0])


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
        if texture in ENDS:
            a, b = _end_of(domain, name, texture, knob.real, shape)
        drawn = domain.draw(name, a, b, knob.real) * _kept(shape, texture, rank, rng, kind)
        drawn = structured.arranged(drawn, texture, rank, rng, kind)
        values = np.where(which == i, drawn, values)
    if domain.fit is not None:
        values = domain.fit(values)
    if domain.kind in DISCRETE:
        return values != 0 if domain.kind == "flag" else values
    return kind.rounded(values, knob.real)


ENDS = ("largest", "smallest")  # the end of a map throughout: never drawn, tried by hand
PARTS_AT_ENDS = ("near 0", "near 1")  # the first or the last 32nd part of a map


def _end_of(domain: Domain, name: str, texture: str, real: bool, shape) -> np.ndarray:
    """The corner of the unit square where a map is largest, or smallest but not 0."""
    below = np.nextafter(1.0, 0.0)
    corners = np.array([[0.0, 0.0, below, below], [0.0, below, 0.0, below]])
    size = np.abs(domain.draw(name, corners[0], corners[1], real))
    size = np.where(size == 0, np.inf, size) if texture == "smallest" else size
    at = int(size.argmin() if texture == "smallest" else size.argmax())
    return np.broadcast_to(corners[:, at].reshape(2, *(1,) * len(shape)), (2, *shape))


def _arranged(draws, texture, rank):
    """Points of the unit square; some textures repeat them along the first core axis."""
    along = (..., slice(0, 1), *(slice(None),) * (rank - 1))  # the first position of that axis
    a, b = draws
    if texture in PARTS_AT_ENDS:
        return (a if texture == "near 0" else a + 31) / 32, b
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
