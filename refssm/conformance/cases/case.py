"""Cases: Hypothesis draws sizes, a few named knobs and one seed; NumPy fills the arrays.

Never element by element: Hypothesis then repeats one fill value and keeps arrays short. A case has
one precision: values are drawn in double precision and rounded to it, and the rounded values are
the exact inputs of everybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import isqrt
from types import MappingProxyType

import numpy as np
from hypothesis import strategies as st

from refssm._operator import Operator
from refssm._signature import length_of
from refssm.conformance.cases.partners import following
from refssm.conformance.cases.sizes import MATRIX_SIZE, SHORT, core_dims, of_matrices, powers_of
from refssm.conformance.standard import NumberType, number_type
from refssm.domains import Domain

SIZES = (1, 2, 3, 5, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 192, 255, 256, 257, 300)
LONG = (1025, 2048, 4097) * 5  # a length that no input has: errors that grow with it show there
RANKS = (1, 2, 1, 3)  # of a low-rank part
LARGE = (255, 256, 257, 300)  # drawn twice as often: they reach a fourth chunk of 64
THOROUGH = (*SIZES, 511, 513, 1000, 1024, 1025, 2048, 4097, 8192)
BATCH = (1, 2, 3)
GROUPS = (2, 1, 3, 2)
TAME_SIZE = 129  # decays of a tame case then keep their product above 2^-60
ENTRIES = 65536  # product of all sizes of a case
ORACLE_ENTRIES = 1024  # the same where the oracle judges
MEDLEY = "medley"  # another map, or another texture, for every channel: many cases in one
NORMAL_MEDLEY = "medley of normal numbers"
NOWHERE: Mapping = MappingProxyType({})
EXACT_MAPS = frozenset({"one", "integer", "compass"})


@dataclass(frozen=True)
class Knob:
    """How one argument is filled: a map of its domain, a texture, and its kind."""

    map: str
    texture: str
    real: bool

    def __str__(self):
        return f"{self.map}/{self.texture}" + ("/real" if self.real else "")


@dataclass(frozen=True, eq=False)
class Case:
    """Sizes, knobs and a seed: everything that the arrays of one example are made from."""

    op: Operator
    dtype: np.dtype
    sizes: Mapping[str, int]  # core dimensions
    batch: Mapping[str, int]
    knobs: Mapping[str, Knob]
    seed: int
    half: NumberType | None = None  # the type whose values the arrays hold, if NumPy has none
    parameters: Mapping[str, int | float] = field(default_factory=dict)

    def __str__(self):
        sizes = " ".join(f"{d}={n}" for d, n in {**self.sizes, **self.parameters}.items())
        batch = "".join(f" batch {d}={n}" for d, n in self.batch.items() if n > 1)
        knobs = " ".join(f"{name}:{knob}" for name, knob in self.knobs.items())
        return f"{sizes}{batch} {knobs} seed={self.seed}"

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """The arguments, in order, in the case's precision."""
        arrays: dict[str, np.ndarray] = {}
        for i, (name, domain) in enumerate(self.op.inputs.items()):
            knob, rng = self.knobs[name], self.generator(i)
            rank = len(self.op.input_dims[i])
            arrays[name] = fill(domain, knob, self._shape(i), rank, rng, self.type)
            if knob.texture == "beside":
                arrays[name] = beside(arrays[domain.meets], arrays[name], rng)
            if domain.follows:
                arrays[name] = following(arrays[domain.follows], arrays[name], self.type)
        return list(arrays.values())

    @property
    def type(self) -> NumberType:
        """The type that is judged."""
        return self.half or number_type(self.dtype)

    @property
    def statics(self) -> dict[str, int | float]:
        """The keyword arguments: core dimensions that no input has, and parameters."""
        sizes = {name: self.sizes[name] for name in self.op.static if name in self.sizes}
        return sizes | dict(self.parameters)

    def generator(self, stream: int) -> np.random.Generator:
        """A stream of random numbers that only this case's seed decides."""
        return np.random.default_rng([self.seed, stream])

    def _shape(self, i):
        leading = [self.batch.get(d, 1) for d in self.op.batch_axes[i]]
        return (*leading, *(length_of(d, self.sizes) for d in self.op.input_dims[i]))

    @property
    def exact(self) -> bool:
        """Whether every input is a small exact integer, so that sums and products do not round."""
        knobs = self.knobs.values()
        return all(k.map in EXACT_MAPS and k.texture != "subnormal" for k in knobs) and bool(knobs)


def simplest(op: Operator) -> dict[str, int | float]:
    """The first value of every parameter."""
    return {name: counts.values[0] for name, counts in op.parameters.items()}


def ordinary_case(
    op: Operator, dtype, sizes=(5, 3, 4, 2), seed=1, real=(), between: Mapping = NOWHERE
) -> Case:
    """A case without extremes, two of every batch axis, core dimensions in the order given."""
    knobs, kind = {}, number_type(dtype)
    for name, domain in op.inputs.items():
        of_real = domain.real or name in real or kind.carrier.kind == "f"
        knobs[name] = Knob(_plain(domain), domain.tame_textures[0], of_real)
    core = dict(zip(core_dims(op), sizes, strict=False))
    parameters = simplest(op)
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    if "r" in core:  # judged in norm: of many states and times little would be seen
        core |= {"r": 1} | {d: min(core[d], 5) for d in ("l", "n") if d in core}
    for dim, (low, high) in between.items():
        core |= {dim: int(min(max(core[dim], low), high))} if dim in core else {}
    batch, half = dict.fromkeys(op.batch_names, 2), kind if kind.half else None
    return Case(op, kind.carrier, core, batch, knobs, seed, half, parameters)


def _plain(domain: Domain) -> str:
    """The first map without extremes that has phases, or at least is not constant."""
    points = np.array([0.2, 0.9])
    drawn = {m: domain.draw(m, points, points, real=False) for m in domain.tame}
    varying = [m for m, (x, y) in drawn.items() if np.real(x) != np.real(y)]
    return next((m for m in varying if np.imag(drawn[m]).any()), varying[0])


def fill(domain: Domain, knob: Knob, shape, rank: int, rng, kind) -> np.ndarray:
    """An array of `domain`, arranged along its first core axis (axis −rank) by the texture."""
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
        values = np.where(which == i, drawn, values)
    if domain.fit is not None:
        values = domain.fit(values)
    return values != 0 if domain.kind == "flag" else kind.rounded(values, knob.real)


def _arranged(draws, texture, rank):
    """Points of the unit square, repeated along the first core axis where so textured."""
    along = (..., slice(0, 1), *(slice(None),) * (rank - 1))  # one place of the first core axis
    a, b = draws
    if rank == 0:
        return a, b
    if texture in ("constant", "channel"):
        a = np.broadcast_to(a[along], a.shape)
    if texture == "constant":
        b = np.broadcast_to(b[along], b.shape)
    return a, b


def _kept(shape, texture, rank, rng, kind: NumberType):
    """What the drawn values are multiplied by: 0 or 1, a decay, a 16th of the smallest normal."""
    if texture == "gaps":
        return rng.random(shape) < 0.7
    if rank == 0 and texture != "subnormal":  # one number is arranged in one way only
        return 1.0
    if texture in ("impulse", "late"):
        length = shape[-rank]
        place = length - 1 - rng.integers(2) if texture == "late" else rng.integers(max(length, 1))
        return (np.arange(length) == max(place, 0)).reshape(length, *(1,) * (rank - 1))
    if texture == "fading":  # over the whole length, by up to 1e-30
        length = shape[-rank]
        decay = np.exp(-69 * rng.random() * np.arange(length) / max(length, 1))
        return decay.reshape(length, *(1,) * (rank - 1))
    if texture in ("diagonal", "lower"):
        i, k = np.indices(shape[-2:])
        return (i == k) if texture == "diagonal" else (i >= k)
    if texture == "cycle":  # a permutation for each member of the batch
        return np.argsort(rng.random(shape[:-1]))[..., None] == np.arange(shape[-1])
    return kind.tiny / 16 if texture == "subnormal" else 1.0


def beside(poles, nodes, rng) -> np.ndarray:
    """Nodes next to poles, at distances 1e-6 to 0.1, none of them met exactly."""
    near = poles.reshape(-1, poles.shape[-1])[0]
    if near.size == 0:
        return nodes
    chosen = near[np.arange(nodes.size) % near.size].reshape(nodes.shape)
    distance = 1e-6 * 1e5 ** rng.random(nodes.shape)
    z = (chosen + distance * np.exp(2j * np.pi * rng.random(nodes.shape))).astype(nodes.dtype)
    met = (z[..., None] == poles.ravel()).any(-1)
    return np.where(met, nodes, z)


@st.composite
def cases(
    draw,
    op: Operator,
    dtype,
    *,
    entries=ENTRIES,
    tame=False,
    mixed=True,
    subnormal=True,
    sizes=SIZES,
    between: Mapping = NOWHERE,
):
    """Cases of `op` in `dtype`; `tame` ones neither underflow nor overflow on any route.

    `between` bounds core dimensions by name.
    """
    kind = number_type(dtype)
    dtype, tame = kind.carrier, tame or kind.name == "float16"  # most of a domain overflows it
    core, batch, left = {}, {}, entries
    # The lists are the same whatever was drawn before, and what is too large is cut down: a list
    # that grows short would make a large case the simpler one for Hypothesis.
    usual = [s for s in sizes if not tame or s <= TAME_SIZE]
    powers = powers_of(op)
    batch_first = len(powers) > 2  # else several core sizes leave no room for it
    if batch_first:
        batch, left = _batch(draw, op, left)
    for i, (dim, power) in enumerate(powers.items()):
        # long signals, mostly narrow; one in four is as wide as it is long, for tiles of both
        sizes_here = usual
        short = op.contract in SHORT
        if of_matrices(op, dim):
            sizes_here = [s for s in usual if s <= MATRIX_SIZE]  # what is done to them: the cube
        first = i == 0 and op.leading == dim
        often = [s for s in LARGE if s in sizes_here] if first else [3, 5] * 18
        if dim == "r":
            sizes_here, often = [], [*RANKS]
        if dim in op.static and not tame and not short and power == 1:
            often += [*LONG]
        room = left if power == 1 else isqrt(left)
        choices = _inside([*sizes_here, *often], between.get(dim))
        core[dim] = _at_most(room, draw(_one_of(tuple(choices))), choices)
        left //= core[dim] ** power
    if not batch_first:
        batch, left = _batch(draw, op, left)
    parameters = {n: draw(_one_of(c.values)) for n, c in op.parameters.items()}
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    knobs = {
        name: draw(_knobs(domain, dtype, tame, mixed, subnormal))
        for name, domain in op.inputs.items()
    }
    seed = draw(st.integers(0, 2**32 - 1))
    return Case(op, dtype, core, batch, knobs, seed, kind if kind.half else None, parameters)


def _batch(draw, op: Operator, left: int) -> tuple[dict[str, int], int]:
    """Sizes of the batch axes, and the room that is left."""
    batch = {}
    for axis in op.batch_names:
        # at least two groups of two heads, mostly: one of them hides which belongs to which
        usual = GROUPS if axis in "gh" else BATCH
        batch[axis] = _at_most(left, draw(_one_of(tuple(usual))), BATCH)
        left //= batch[axis]
    return batch, left


def _at_most(left, size, sizes):
    """`size`, or the largest of `sizes` for which there is room, or the smallest there is."""
    return size if size <= left else max([s for s in sizes if s <= left], default=min(sizes))


def _inside(sizes, ends) -> list[int]:
    """Those of `sizes` in a range, and its ends."""
    if ends is None:
        return sizes
    low, high = map(int, ends)
    return [s for s in sizes if low <= s <= high] + [low, high]


@cache
def _one_of(choices: tuple):
    """A strategy made once: making it costs as much as judging a small case."""
    return st.sampled_from(choices)


@cache
def _knobs(domain: Domain, dtype, tame, mixed, subnormal):
    """Knobs of one argument; the simplest first, so that failures shrink to it."""
    maps = [m for m in domain.maps if not tame or m in domain.tame]
    textures = [t for t in domain.textures if not tame or t in domain.tame_textures]
    if not tame:
        maps += [MEDLEY] * (len(maps) // 2)
        textures = [t for t in textures if subnormal or t != "subnormal"]
        textures += [MEDLEY if subnormal else NORMAL_MEDLEY] * (len(textures) // 2)
    if domain.kind == "complex" or dtype.kind != "c":
        kinds = [domain.real or dtype.kind != "c"]
    else:
        kinds = [domain.real] * 2 + [mixed or domain.real]
    return st.builds(Knob, st.sampled_from(maps), st.sampled_from(textures), st.sampled_from(kinds))
