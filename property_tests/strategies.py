"""Random arguments of any operator of the catalog, with any broadcasting.

Hypothesis draws batch shapes, core sizes, a map and a texture per argument, and one seed; NumPy
fills the arrays through the domains. Hypothesis never draws single elements.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.conformance.cases.case import MEDLEY, Knob, beside, fill
from refssm.conformance.cases.partners import following
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.number_types import number_type

# derandomized: every run draws the same examples on every machine
laws = settings(
    max_examples=12,  # after ten examples Hypothesis draws near copies
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
)


@dataclass(frozen=True, eq=False)
class Example:
    """Shapes, knobs and a seed that define the arguments of one call."""

    op: Operator
    dtype: np.dtype
    shapes: tuple[tuple[int, ...], ...]
    knobs: Mapping[str, Knob]
    statics: Mapping[str, int]
    seed: int

    def __repr__(self):
        knobs = ", ".join(f"{name}: {knob}" for name, knob in self.knobs.items())
        return f"{self.op} {self.dtype} {self.shapes} {knobs} {dict(self.statics)} seed={self.seed}"

    def generator(self, stream: int) -> np.random.Generator:
        """A random generator that depends only on the seed."""
        return np.random.default_rng([self.seed, stream])

    def redrawn(self) -> "Example":
        """The same example with another seed."""
        return replace(self, seed=self.seed + 1)

    @cached_property
    def arrays(self) -> list[np.ndarray]:
        """The arguments, in order."""
        arrays: dict[str, np.ndarray] = {}
        for i, (name, domain) in enumerate(self.op.inputs.items()):
            knob, rng, rank = self.knobs[name], self.generator(i), len(self.op.input_dims[i])
            arrays[name] = fill(domain, knob, self.shapes[i], rank, rng, self.dtype)
            if knob.texture == "beside":
                arrays[name] = beside(arrays[domain.meets], arrays[name], rng)
            if domain.follows:
                arrays[name] = following(
                    arrays[domain.follows],
                    arrays[name],
                    number_type(self.dtype),
                    entry_by_entry=domain.entry_by_entry,
                )
            if domain.kind == "offsets":
                arrays[name] = np.rint(arrays[name] * self.length).astype(np.int64)
        return list(arrays.values())

    @property
    def length(self) -> int:
        """The number of steps."""
        axes = zip(self.shapes, self.op.input_dims, strict=True)
        return next(s[d.index("l") - len(d)] for s, d in axes if "l" in d)

    def slices(self):
        """The core arguments at each index of the broadcast batch."""
        batch = self.op.batch_shape(*self.arrays)
        cores = [
            np.broadcast_to(a, batch + a.shape[a.ndim - len(dims) :])
            for a, dims in zip(self.arrays, self.op.input_dims, strict=True)
        ]
        for index in np.ndindex(*batch):
            yield index, [a[index] for a in cores]


@st.composite
def examples(draw, op: Operator, dtype, *, maps=(), textures=(), mixed=True, max_dims=2):
    """Examples of `op`; `maps` and `textures` restrict those of the domains."""
    dtype = np.dtype(dtype)
    matrices = any(len(set(dims)) < len(dims) for dims in op.input_dims)  # their oracles are slow
    longest = [3 if matrices else 8, *([3 if matrices else 4] * len(core_dims(op)))]
    core = {d: draw(st.integers(1, n)) for d, n in zip(core_dims(op), longest, strict=False)}
    few = max_dims if len(op.inputs) < 4 else min(max_dims, 1)  # the oracle computes slice by slice
    batches = draw(
        mutually_broadcastable_shapes(
            num_shapes=len(op.inputs), min_dims=0, max_dims=few, max_side=3
        )
    ).input_shapes
    shapes = tuple(
        (*(() if name in op.offsets else batch), *(length_of(dim, core) for dim in dims))
        for name, batch, dims in zip(op.inputs, batches, op.input_dims, strict=True)
    )
    knobs = {n: draw(_knobs(d, dtype, maps, textures, mixed)) for n, d in op.inputs.items()}
    statics = {name: core[name] for name in op.static if name in core}
    statics |= {name: draw(st.sampled_from(c.values)) for name, c in op.parameters.items()}
    statics = op.fitted(statics, core)
    return Example(op, dtype, shapes, knobs, statics, draw(st.integers(0, 2**32 - 2)))


def _knobs(domain, dtype, maps, textures, mixed):
    """How to fill one argument; real for a real type, else sometimes real too."""
    names = [m for m in (*domain.maps, MEDLEY) if m in maps or not maps]
    kinds = [t for t in domain.textures if t in textures or not textures]
    if dtype.kind != "c":
        kinds = [t for t in kinds if t != "beside"]  # a circle around a pole
    real = [dtype.kind != "c" or domain.real]
    if dtype.kind == "c" and mixed and domain.kind == "either":
        real.append(True)
    return st.builds(Knob, st.sampled_from(names), st.sampled_from(kinds), st.sampled_from(real))


def cotangents(example: Example, outputs):
    """Random cotangents of the given outputs: complex if the output is."""
    rng, drawn = example.generator(99), []
    for y in outputs:
        d = rng.standard_normal((2, *y.shape))
        drawn.append((d[0] + 1j * d[1] if np.iscomplexobj(y) else d[0]).astype(y.dtype))
    return drawn


def several(y) -> tuple:
    """The outputs of an operator, always as a tuple."""
    return y if isinstance(y, tuple) else (y,)
