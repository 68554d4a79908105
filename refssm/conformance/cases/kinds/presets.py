"""Drawing cases of presets: systems that models start from, in their own sizes, some long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from refssm._declaration.operator import Operator
from refssm.conformance.cases.case import NOWHERE, Case
from refssm.conformance.cases.drawing import knob_of
from refssm.conformance.cases.limits import Narrowed
from refssm.conformance.cases.sampling import Choices, sampler
from refssm.conformance.cases.sizes import core_dims, powers_of
from refssm.conformance.cases.stacking import free_arguments, of_complex
from refssm.conformance.number_types import LONG_DOUBLE_IS_WIDER, number_type
from refssm.presets.catalog import presets_of
from refssm.presets.preset import Preset

SHORT = (65, 16, 33, 100, 256, 5)  # lengths of presets that are not long
# lengths of long presets: of each pair the last is odd, so that no block divides it. Complex types
# have the last only: the programs are the same, and bounds of long cases take most of the time.
LENGTHS = {"scan": (1024, 1537), "kernel": (2048, 3001), "points": ()}
DEEP = {"scan": (4096, 6007), "kernel": (16384, 12001), "points": ()}  # of the profile `thorough`
WIDTHS = (3, 1, 4, 2)
BATCH = (1, 2)
BEYOND = (4115,)  # in double precision: more entries than the oracle judges
CHUNK = 64
LEAST = {"kernel": 2**13, "scan": 2**13, "points": 2**15}  # entries of a case in double precision
NARROW = 65  # in double precision: states of a case, because the oracle of S4 solves dense systems
WORK = 2**19  # the largest product of all sizes of a long case


@sampler
def preset_cases(
    draw: Choices,
    op: Operator,
    dtype,
    presets: Sequence[Preset],
    *,
    lengths: Sequence[int],
    entries: int,
    mixed=True,
    subnormal=True,
    between: Mapping = NOWHERE,
    one_chunk=False,
):
    """Cases of `presets`, with lengths among `lengths`; `entries` bounds the size of the batch.

    With `one_chunk`, a chunk of SSD is at least as long as the sequence.
    """
    kind = number_type(dtype)
    preset = draw.one_of(presets)
    core = _sizes(draw, op, preset, lengths, entries, between)
    left, batch = entries // max(_cost(preset, core), 1), {}
    for axis in op.batch_names:
        wanted = draw.one_of(BATCH)
        batch[axis] = wanted if wanted <= left else 1
        left //= batch[axis]
    chunk = max(lengths) if one_chunk else CHUNK
    parameters = {n: draw.one_of(_at_least(chunk, c.values)) for n, c in op.parameters.items()}
    core |= {dim: int(parameters.pop(dim)) for dim in core if dim in parameters}
    knobs = {
        name: knob_of(draw, op.inputs[name], kind.carrier, False, mixed, subnormal)
        for name in free_arguments(op, preset)
    }
    seed = draw.below(2**32)
    half = kind if kind.half else None
    return Case(op, kind.carrier, core, batch, knobs, seed, half, parameters, preset)


def _sizes(draw: Choices, op, preset: Preset, lengths, entries, between) -> dict[str, int]:
    """Core sizes: those of the preset, a length, and small ones for the rest."""
    core = {}
    for dim in core_dims(op):
        if dim in preset.sizes:
            core[dim] = preset.sizes[dim]
            continue
        choices = lengths if dim == "l" else WIDTHS
        room = entries // max(_cost(preset, {**preset.sizes, **core}), 1)
        choices = [s for s in choices if s <= room] or [min(choices)]
        core[dim] = draw.one_of(_limited(choices, between.get(dim)))
    return core


def _at_least(chunk: int, values: tuple) -> tuple:
    """The values of a keyword; of chunks those of at least `chunk` steps."""
    return tuple(v for v in values if v >= chunk) or values


def _cost(preset: Preset, sizes: Mapping[str, int]) -> int:
    """The product of sizes; n twice where each point is a system of n equations."""
    return prod(sizes.values()) * (sizes["n"] if preset.along == "points" else 1)


def _limited(choices, ends) -> list[int]:
    """The sizes moved into a range of `--where`, if there is one."""
    if ends is None:
        return list(choices)
    low, high = map(int, ends)
    return list(dict.fromkeys(min(max(s, low), high) for s in choices))


def usable(op: Operator, dtype, *, entries: int, name: str = "", between: Mapping = NOWHERE):
    """The presets of `op` for a type, small enough for `entries`; those called `name` if given.

    A complex preset needs a complex type. A range of `--where` excludes presets of other sizes.
    """
    kind = number_type(dtype)
    return tuple(
        preset
        for preset in presets_of(op)
        if (not name or preset.name == name)
        and (kind.carrier.kind == "c" or _always_complex(op) or not of_complex(op, preset))
        and _cost(preset, preset.sizes) <= entries
        and all(_inside(n, between.get(dim)) for dim, n in preset.sizes.items())
        and not _limits(op, preset)
    )


def _limits(op: Operator, preset: Preset) -> bool:
    """True if `--where` limits an argument that the preset draws."""
    limited = {name for name, domain in op.inputs.items() if isinstance(domain, Narrowed)}
    return bool(limited) and not limited <= {*free_arguments(op, preset)}


def _always_complex(op: Operator) -> bool:
    """True if the operator is judged in complex types only."""
    return any(domain.kind == "complex" for domain in op.inputs.values())


def _inside(size, ends) -> bool:
    return ends is None or ends[0] <= size <= ends[1]


@dataclass(frozen=True)
class OfPresets:
    """How large the presets of a check are: `entries` as of its usual cases; `deep` is longer."""

    entries: int
    deep: bool = False
    of_gradient: bool = False

    def largest(self, op: Operator, dtype, dim: str) -> int:
        """The largest size of a dimension among its short cases; 0 if no preset has it."""
        presets = _narrow(op, dtype)
        if not presets:
            return 0
        entries = self._entries(presets, number_type(dtype).double)
        return max(p.sizes.get(dim, 0) for p in _short(op, presets, entries))

    def _entries(self, presets: Sequence[Preset], double: bool) -> int:
        """The limit on the product of the sizes of a short case."""
        by_long_double = double and LONG_DOUBLE_IS_WIDER
        return max(self.entries, LEAST[presets[0].along]) if by_long_double else self.entries

    def samplers(self, op: Operator, dtype, name: str = "", between: Mapping = NOWHERE, **how):
        """The sampler of its short cases, or None, and of a long case of each length."""
        double = number_type(dtype).double
        presets = _narrow(op, dtype, name, between)
        if not presets:
            return None, ()
        entries = self._entries(presets, double)
        how = {**how, "between": between, "entries": entries}
        narrow = _short(op, presets, entries)
        short = preset_cases(op, dtype, narrow, lengths=SHORT, **how)
        lengths = long_lengths(op, dtype, presets, self.deep)
        if not lengths or (double and not LONG_DOUBLE_IS_WIDER):
            return short, ()
        long = fitting(presets, max(lengths), WORK)
        if double or self.of_gradient:  # many states and many steps only in a value in double
            end = min if self.of_gradient else max
            cost = end(_cost(p, p.sizes) for p in long)
            long = tuple(p for p in long if _cost(p, p.sizes) == cost)
        how["entries"] = WORK
        # each length has other presets, so that two lengths see all of two
        shares = [long[i :: len(lengths)] or long for i in range(len(lengths))]
        # of two lengths the even one is one chunk: a block of 256 inside may forget its state
        return short, tuple(
            preset_cases(op, dtype, share, lengths=(l,), one_chunk=l != lengths[-1], **how)
            for l, share in zip(lengths, shares, strict=True)
        )


def _narrow(op: Operator, dtype, name="", between: Mapping = NOWHERE) -> tuple[Preset, ...]:
    """The presets of a check; in double precision those that the oracle of S4 can solve, if any."""
    presets = usable(op, dtype, entries=WORK, name=name, between=between)
    if not number_type(dtype).double:
        return presets
    return tuple(p for p in presets if p.sizes.get("n", 0) <= NARROW) or presets


def _short(op: Operator, presets: Sequence[Preset], entries: int) -> tuple[Preset, ...]:
    """Those of the short cases."""
    return fitting(presets, min(SHORT) if "l" in core_dims(op) else 1, entries)


def fitting(presets: Sequence[Preset], length: int, entries: int) -> tuple[Preset, ...]:
    """Those presets whose cases of this length have at most `entries`; at least the smallest."""
    fits = [p for p in presets if _cost(p, p.sizes) * length <= entries]
    return tuple(fits or sorted(presets, key=lambda p: _cost(p, p.sizes))[:1])


def long_lengths(
    op: Operator, dtype, presets: Sequence[Preset], deep: bool = False
) -> tuple[int, ...]:
    """The lengths of long cases of these presets, which are alike in what the length is.

    Empty if the operator has no length, or work that grows too fast with it.
    """
    if "l" not in core_dims(op) or op.contract.stays_short or powers_of(op)["l"] > 1:
        return ()
    (along,) = {preset.along for preset in presets}
    if number_type(dtype).double and along == "kernel":
        return BEYOND  # judged by long double, not by the oracle
    lengths = (DEEP if deep else LENGTHS)[along]
    one = number_type(dtype).carrier.kind == "c" and not deep
    return lengths[-1:] if one else lengths


def longest_preset(op: Operator, dtype, deep: bool = False) -> int:
    """The largest length of its presets; 0 if none is long."""
    presets = usable(op, dtype, entries=WORK)
    if not presets or (number_type(dtype).double and not LONG_DOUBLE_IS_WIDER):
        return 0
    return max(long_lengths(op, dtype, presets, deep), default=0)
