"""The strategy of Hypothesis that draws the judge's cases: usual, structured, and presets.

Each choice of the judge's samplers is one integer of Hypothesis. The first entry of each list is
the simplest one, so a failure shrinks to small sizes, simple maps and the seed 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from hypothesis import strategies as st

from refssm._declaration.implements import NUMBERS, Budget, unknown
from refssm._declaration.layout import Layout, in_layout, parse
from refssm._declaration.names import did_you_mean
from refssm._declaration.operator import Operator
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases import drawing, ranges
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.cases.kinds import structured
from refssm.conformance.cases.kinds.presets import SHORT, fitting, preset_cases, usable
from refssm.conformance.cases.sampling import Choices, Sampler, made
from refssm.conformance.cases.sizes import core_dims
from refssm.conformance.checks.checks import types_of
from refssm.conformance.checks.drawing import PRESETS, STRUCTURED
from refssm.conformance.number_types import number_type
from refssm.conformance.own_laws.arguments import OwnCall
from refssm.conformance.own_laws.drawn import DrawnCase
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError, shown

Cases = st.SearchStrategy[DrawnCase]


@dataclass(frozen=True)
class Wished:
    """What a user asks of the cases; the fields are the keywords of `refssm.testing.cases`."""

    where: str | Iterable[str]
    layout: str
    kinds: str
    tame: bool
    subnormal: bool
    entries: int
    accuracy: Budget | None
    ftz: bool

    def __post_init__(self):
        for name in ("tame", "subnormal", "ftz"):
            if not isinstance(value := getattr(self, name), bool):
                raise ValueError(f"`{name}` must be True or False, got {value!r}")
        if self.kinds not in NUMBERS:
            raise ValueError(unknown("kinds", self.kinds, NUMBERS))
        if isinstance(self.entries, bool) or not isinstance(self.entries, int) or self.entries < 1:
            raise ValueError(f"`entries` must be a whole number of 1 or more, got {self.entries!r}")
        if not isinstance(self.layout, str):
            raise ValueError(f"`layout` must be a string, got {self.layout!r}")
        if not (self.accuracy is None or isinstance(self.accuracy, Budget)):
            raise ValueError(f"`accuracy` must be a Budget, got {self.accuracy!r}")


@dataclass(frozen=True)
class CaseSource:
    """Where the cases come from; the first sampler draws usual cases."""

    op: Operator
    dtype: str
    samplers: tuple[Sampler, ...]
    layout: Layout | None
    standard: Standard

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        """How Hypothesis prints it."""
        del cycle
        printer.text(f"{self.op} {self.dtype}")

    @cached_property
    def choices(self) -> int:
        """How many choices a usual case has."""
        return len(made(self.samplers[0], Choices()).choices)


def strategy_of(name: str, dtype: object, asked: dict) -> Cases:
    """The strategy; ValueError with one sentence for what cannot be drawn."""
    try:
        if not isinstance(name, str):
            raise ValueError(f"wanted the name of an operator, got {shown(name)}")
        wanted, op = Wished(**asked), operator_named(name)
        kind = _type_of(op, dtype)
        texts = _texts(wanted.where)
        where = ranges.parse(texts, [op])
        op = ranges.narrowed(in_layout(op, wanted.layout), where)
        layout = parse(op, wanted.layout) if wanted.layout else None
    except UsageError as error:
        raise ValueError(f"cases: {f'{error}'.removeprefix('--')}") from None
    except ValueError as error:
        raise ValueError(f"cases: {error}") from None
    standard = Standard.of(kind, wanted.accuracy, wanted.ftz)
    samplers = tuple(_samplers(op, kind, wanted, where.sizes))
    # the first call imports oracles, and takes longer than an example may
    _ready(ordinary_case(op, kind, between=where.sizes), standard)
    return judged_cases(CaseSource(op, kind, samplers, layout, standard))


def _texts(where: str | Iterable[str]) -> tuple[str, ...]:
    texts = (where,) if isinstance(where, str) else where
    if not isinstance(texts, tuple | list) or not all(isinstance(t, str) for t in texts):
        raise ValueError(f'where: wanted a range such as "l=1..64", got {shown(where)}')
    return tuple(texts)


def _type_of(op: Operator, dtype: object) -> str:
    """The name of a type that the operator is judged in; by default the first one."""
    known = types_of(op)[-1:] if op.constructor else types_of(op, half=True)
    if dtype is None:
        return known[0]
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    if name not in known:
        hint = did_you_mean(name, known)
        raise ValueError(f"{op} has no type {name!r}; {hint}wanted one of {', '.join(known)}")
    return name


def _samplers(op: Operator, dtype: str, asked: Wished, between) -> list[Sampler]:
    """As often as the judge draws them: of five one is a preset, of the others a quarter close to
    a structure."""
    mixed, subnormal = asked.kinds != "complex", asked.subnormal
    told = {"mixed": mixed, "subnormal": subnormal, "between": between}
    sizes = tuple(s for s in drawing.SIZES if s <= asked.entries)
    how = {**told, "entries": asked.entries, "sizes": sizes}
    usual = drawing.cases(op, dtype, tame=asked.tame, **how)
    if asked.tame:
        return [usual]
    rest = [usual] * (STRUCTURED * (PRESETS - 1))
    kinds = structured.kinds_of(op)
    if kinds and not number_type(dtype).half:
        rest[-(PRESETS - 1) :] = [drawing.cases(op, dtype, of_structure=kinds, **how)] * (
            PRESETS - 1
        )
    presets = usable(op, dtype, entries=asked.entries, between=between)
    if presets:
        few = fitting(presets, min(SHORT) if "l" in core_dims(op) else 1, asked.entries)
        short = preset_cases(op, dtype, few, lengths=SHORT, entries=asked.entries, **told)
        rest += [short] * STRUCTURED
    return rest


def _ready(case: Case, standard: Standard) -> None:
    OwnCall(case, standard, None, tuple(case.arrays), case.statics).gauges()


@st.composite
def judged_cases(draw, of: CaseSource) -> DrawnCase:
    """One case; each choice of a sampler is an integer that Hypothesis draws."""
    sampler = of.samplers[draw(st.integers(0, len(of.samplers) - 1))]
    choices = Choices(lambda place, end: draw(st.integers(0, end - 1)))
    case = sampler(choices)
    # Hypothesis takes fewer choices for simpler, and the case of a preset has fewer
    for _ in range(of.choices + 1 - len(choices.made) if sampler is not of.samplers[0] else 0):
        draw(st.booleans())
    if of.layout is not None and of.layout.omitted:
        case = replace(case, batch={**case.batch, **dict.fromkeys(of.layout.omitted, 1)})
    return DrawnCase(OwnCall(case, of.standard, of.layout, tuple(case.arrays), case.statics))
