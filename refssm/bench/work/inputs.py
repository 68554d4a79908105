"""The inputs of a timed call, drawn once with a fixed seed, as models have them.

They come from the declared domains. Where a domain has a map called "usual" (steps of 1e-3 to 0.1)
or "ladder" (rates −1 to −16), that one is used. Poles of kernels are those of S4D-Lin, so that no
state decays to subnormal numbers at once, which would slow down some implementations only.
"""

from collections.abc import Mapping

import numpy as np

from refssm import domains
from refssm._declaration.operator import Operator
from refssm.bench.work.sizes import Size
from refssm.conformance.cases.case import Case, Knob, plain_map
from refssm.conformance.number_types import number_type
from refssm.domains import Domain

SEED = 22
REALISTIC = ("usual", "turning", "slow", "normal", "ladder")  # the first that a domain has


def drawn(op: Operator, size: Size, seed: int = SEED) -> list[np.ndarray]:
    """The arguments of one call."""
    case = case_of(op, size, seed)
    arrays = case.arrays
    for i, (domain, axes) in enumerate(zip(op.inputs.values(), op.input_dims, strict=True)):
        special = SPECIAL.get(id(domain))
        if special is not None and axes and axes[-1] == "n":
            complex_ = np.iscomplexobj(arrays[i])
            made = special(arrays[i].shape, case.generator(100 + i), complex_)
            arrays[i] = case.type.rounded(made, real=not complex_)
    return arrays


def case_of(op: Operator, size: Size, seed: int = SEED) -> Case:
    """The judge's case with these sizes."""
    kind, knobs = number_type(size.dtype), {}
    for name, domain in op.inputs.items():
        real = domain.real or kind.carrier.kind == "f"
        texture = next((t for t in domain.tame_textures if t in domain.textures), "each")
        knobs[name] = Knob(_map(domain, real), texture, real)
    given = {n: v for n, v in size.parameters.items() if n not in size.core}
    return Case(op, kind.carrier, size.core, size.batch, knobs, seed, parameters=given)


def repeated(op: Operator, arrays, part: Size, whole: Size) -> list[np.ndarray]:
    """The arguments of a size with a larger batch: members again and again, for drawing is slow."""
    made = []
    for a, axes, dims in zip(arrays, op.batch_axes, op.input_dims, strict=True):
        named = axes[len(axes) - (a.ndim - len(dims)) :]
        times = [whole.batch.get(axis, 1) // part.batch.get(axis, 1) for axis in named]
        made.append(np.tile(a, [*times, *(1 for _ in dims)]))
    return made


def _map(domain: Domain, real: bool) -> str:
    """The most realistic map of a domain; real numbers of a turning map change their sign."""
    names = [n for n in REALISTIC if n in domain.maps and not (real and n == "turning")]
    return next((n for n in names), plain_map(domain))


def cotangents(op: Operator, size: Size, arrays, statics: Mapping, seed: int = SEED) -> list:
    """Normal numbers in the shapes and types of the outputs."""
    rng, drawn = np.random.default_rng([seed, 700]), []
    shapes, types = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
    for shape, dtype in zip(shapes, types, strict=True):
        d = rng.standard_normal(shape)
        if dtype.kind == "c":
            d = d + 1j * rng.standard_normal(shape)
        drawn.append(number_type(size.dtype).rounded(d, real=dtype.kind != "c"))
    return drawn


def of_batch(op: Operator, arrays, wanted: Mapping[str, int]) -> list[np.ndarray]:
    """The arguments with so many members of each batch axis; one of those not in `wanted`."""
    cut = []
    for a, axes, dims in zip(arrays, op.batch_axes, op.input_dims, strict=True):
        named = axes[len(axes) - (a.ndim - len(dims)) :]
        leading = tuple(slice(wanted.get(axis, 1)) for axis in named)
        cut.append(np.ascontiguousarray(a[(*leading, ...)]).reshape(
            *(min(n, wanted.get(axis, 1)) for n, axis in zip(a.shape, named, strict=False)),
            *a.shape[len(named) :]))  # fmt: skip
    return cut


def beginning(op: Operator, arrays, statics: dict, l: int) -> tuple[list[np.ndarray], dict]:
    """The first l steps of every argument, and the keyword arguments with this length."""
    cut = []
    for a, dims in zip(arrays, op.input_dims, strict=True):
        steps = tuple(slice(l) if d == "l" else slice(None) for d in dims)
        cut.append(np.ascontiguousarray(a[(..., *steps)]).reshape(
            *a.shape[: a.ndim - len(dims)],
            *(min(n, l) if d == "l" else n for n, d in
              zip(a.shape[a.ndim - len(dims) :], dims, strict=True))))  # fmt: skip
    return cut, {**statics, "l": l} if "l" in statics else statics


def members(size: Size, count: int) -> dict[str, int]:
    """Sizes of the batch axes with about `count` members, the longest axis first."""
    found, left = {}, count
    for axis, n in sorted(size.batch.items(), key=lambda item: -item[1]):
        found[axis] = max(1, min(n, left))
        left //= found[axis]
    return found


def s4d_lin(shape, rng, complex_):
    """dt(−½ + πin) with one step of 1e-3 to 0.1 for each channel; the real part if real."""
    dt = 1e-3 * 100 ** rng.random((*shape[:-1], 1))
    n = np.arange(shape[-1])
    return dt * (-0.5 + 1j * np.pi * n) if complex_ else -dt * (0.5 + n / shape[-1])


def ladder(shape, rng, complex_):
    """−1, −2, …, −n: how Mamba starts."""
    del rng, complex_
    return np.broadcast_to(-1.0 - np.arange(shape[-1]), shape)


def modes(shape, rng, complex_):
    """−½ + πin, or −½ to −1 if real."""
    del rng
    n = np.arange(shape[-1])
    wanted = -0.5 + 1j * np.pi * n if complex_ else -0.5 - 0.5 * n / shape[-1]
    return np.broadcast_to(wanted, shape)


def bilinear(shape, rng, complex_):
    """(1 + x/2)/(1 − x/2) of S4D-Lin's x: discrete poles inside the unit circle."""
    x = s4d_lin(shape, rng, complex_)
    return (1 + x / 2) / (1 - x / 2)


SPECIAL = {
    id(domains.exponents): s4d_lin,
    id(domains.rates): ladder,
    id(domains.poles): modes,
    id(domains.modes): modes,
    id(domains.kernel_modes): modes,
    id(domains.damped_modes): modes,
    id(domains.discrete_poles): bilinear,
}
