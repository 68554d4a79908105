"""The order of axes of an implementation, by the catalog's names: `layout="b d l, d n -> b d l"`.

The judge stores arrays in the canonical layout: batch axes first, then the core dimensions of the
signature. It transposes each argument to the author's order, and each result back. `(g h)` is one
axis that merges g and h as einops does: h varies fastest. An axis called 1 has length one; the
judge loops over batch axes that the layout leaves out.
"""

import re
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from types import MappingProxyType

import numpy as np
from einops import EinopsError
from einops.parsing import AnonymousAxis, ParsedExpression

from refssm._declaration.layout_near import nearest, wrong_axes
from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of

Axes = tuple[str, ...]  # a merged axis is "(g h)"
NO_SIZES: Mapping[str, int] = MappingProxyType({})
GROUPS = "g"  # not looped over: a function without them is judged with one group
TWICE = re.compile(r"\b(\d+)([A-Za-z]\w*)")  # "2n" is no name for einops


@dataclass(frozen=True)
class Layout:
    """Axes of each argument and output; `omitted` are the batch axes that the judge loops over."""

    inputs: tuple[Axes, ...]
    outputs: tuple[Axes, ...]
    omitted: Axes = ()

    def __str__(self):
        sides = (", ".join(" ".join(axes) for axes in side) for side in (self.inputs, self.outputs))
        return " -> ".join(sides)


def canonical(op: Operator) -> Layout:
    """The canonical layout: batch axes, then core dimensions."""
    inputs = zip(op.batch_axes, op.input_dims, strict=True)
    return Layout(
        tuple((*batch, *core) for batch, core in inputs),
        tuple((*op.batch_names, *core) for core in op.output_dims),
    )


@lru_cache(1000)  # one operator for all who ask: what is expected is remembered by it
def in_layout(op: Operator, text: str) -> Operator:
    """The operator whose arguments have only the batch axes that they have in a layout.

    An axis that another argument has is shared by those that lack it: b in "l n, b l n -> b l n".
    Without `g` there is one group. A text that `parse` refuses changes nothing.
    """
    groups = text.partition("->")[0].split(",")
    if not text or op.constructor or len(groups) != len(op.inputs):
        return op
    try:
        named = [single(_axes(group)) for group in groups]
    except EinopsError:
        return op
    shared = {axis for group in named for axis in group}
    absent = {"1", GROUPS} - shared
    axes = [
        [a for a in batch if a not in absent and (a not in shared or a in group)]
        for group, batch in zip(named, op.batch_axes, strict=True)
    ]
    before = [[axis for axis in batch if axis != "1"] for batch in op.batch_axes]
    return op if axes == before else replace(op, batch=", ".join(map(" ".join, axes)))


def parse(op: Operator, text: str) -> Layout:
    """An author's layout; ValueError if its counts or axes do not match the operator."""
    try:
        return _parsed(op, text)
    except ValueError as error:
        raise ValueError(f"{error}{_meant(op, text, f'{error}')}") from None


def _parsed(op: Operator, text: str) -> Layout:
    sides, usual = [side.split(",") for side in text.split("->")], canonical(op)
    if op.constructor and [group.strip() for group in sides[0]] == [""]:
        sides[0] = []
    if len(sides) != 2 or [*map(len, sides)] != [len(usual.inputs), len(usual.outputs)]:
        counts = f"{len(usual.inputs)} arguments and {len(usual.outputs)} outputs"
        raise ValueError(f"{op}: layout {text!r} must have {counts}, as {str(usual)!r}")
    names, groups = [*op.inputs, *op.outputs], [*sides[0], *sides[1]]
    wants = [single(axes) for axes in (*usual.inputs, *usual.outputs)]
    read = []
    for name, group, want in zip(names, groups, wants, strict=True):
        try:
            read.append(_axes(group))
        except EinopsError as error:
            came, why = " ".join(group.split()), str(error).replace("\n", ": ")
            raise ValueError(f"{_unfit(op, text, name, came, want)}: {why}") from None
    named = {axis for axes in read for axis in single(axes)}
    omitted = tuple(axis for axis in op.batch_names if axis not in named)
    names_of_axes = {axis for want in wants for axis in want}
    for name, got, want in zip(names, read, wants, strict=True):
        kept = tuple(axis for axis in want if axis not in omitted)
        if Counter(single(got)) != Counter(kept):
            strange = not names_of_axes.issuperset(single(got))
            kept = want if strange and len(single(got)) == len(want) else kept  # it may stand for b
            told = _unfit(op, text, name, " ".join(got), kept)
            raise ValueError(f"{told}: {wrong_axes(name, single(got), kept)}")
    return Layout(tuple(read[: len(sides[0])]), tuple(read[len(sides[0]) :]), omitted)


def _meant(op: Operator, text: str, told: str) -> str:
    """The nearest layout that the operator has, as a question; "" if it has been `told`."""
    usual = canonical(op)
    inputs, outputs = ([*map(single, side)] for side in (usual.inputs, usual.outputs))
    for guess in (nearest(text, inputs, outputs, op.batch_names), f"{usual}"):
        try:
            _parsed(in_layout(op, guess), guess)
        except ValueError:
            continue
        return "" if repr(guess) in told else f"; did you mean {guess!r}?"
    return ""


def _unfit(op: Operator, text: str, name: str, came: str, wanted: Axes) -> str:
    """The sentence about the axes of one argument that are not those of the operator."""
    axes = f"{came or 'none'}, wanted {' '.join(wanted) or 'no axes'} in some order"
    return f"{op}: layout {text!r} gives `{name}` the axes {axes}"


def _axes(group: str) -> Axes:
    """The axes of one array, as einops reads them; EinopsError if it cannot."""
    text = TWICE.sub(r"\2_times_\1", " ".join(group.split()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names like `in`: no operator has them
        parsed = ParsedExpression(text, allow_duplicates=True)  # a square matrix has n twice
    if parsed.has_ellipsis:
        raise EinopsError("an ellipsis is not supported, write the name of each axis")
    merged = ([_name(axis) for axis in axes] for axes in parsed.composition)
    return tuple(
        f"({' '.join(axes)})" if len(axes) > 1 else axes[0] if axes else "1" for axes in merged
    )


def _name(axis: str | AnonymousAxis) -> str:
    """The name of an axis, with "2n" as the catalog writes it."""
    if not isinstance(axis, str):
        return str(axis.value)
    name, _, count = axis.rpartition("_times_")
    return f"{count}{name}" if name else axis


def parts(axis: str) -> Axes:
    """ "(g h)" -> g, h; "b" -> b; "1" -> none."""
    return () if axis == "1" else tuple(axis.strip("()").split())


def single(axes: Axes) -> Axes:
    """The axes with merged ones taken apart, without those of length one."""
    return tuple(part for axis in axes for part in parts(axis))


def sizes_of(op: Operator, axes, arrays, statics) -> dict[str, int]:
    """The size of each axis, from arrays with these axes in the canonical layout.

    An array may have length 1 where another has more; leading axes may be missing.
    """
    cores = {dim for dims in op.output_dims for dim in dims}
    sizes = {name: int(n) for name, n in statics.items() if name in cores}
    for own, a in zip(axes, arrays, strict=True):
        for axis, n in zip(reversed(own), reversed(a.shape), strict=False):
            if axis != "1":
                sizes[axis] = int(n) if n != 1 else sizes.get(axis, 1)
    return sizes


def length(axis: str, sizes: Mapping[str, int]) -> int:
    """The length of an axis, merged or not; KeyError if a size is not known."""
    return prod(sizes[p] if p in sizes else length_of(p, sizes) for p in parts(axis))


def arranged(a: np.ndarray, axes: Axes, wanted: Axes) -> np.ndarray:
    """Transpose `a` from `axes` to `wanted`; returns a copy that is contiguous in the new order."""
    a = np.squeeze(a, tuple(i for i, axis in enumerate(axes) if axis == "1"))
    a = np.transpose(a, _order(single(axes), single(wanted)))
    lengths = iter(a.shape)
    shape = [prod(next(lengths) for _ in parts(axis)) for axis in wanted]
    return np.array(a.reshape(shape), order="C")


def restored(
    y: np.ndarray, axes: Axes, wanted: Axes, sizes: Mapping[str, int] = NO_SIZES
) -> np.ndarray:
    """Transpose an output `y` from `axes` back to `wanted`; ValueError if its shape is wrong.

    Merged axes are split by `sizes`, which must have all but one of their sizes.
    """
    if y.ndim != len(axes):
        raise ValueError(f"shape {y.shape}, want axes {' '.join(axes) or 'none'}")
    shape = []
    for n, axis in zip(y.shape, axes, strict=True):
        own = _split(n, parts(axis), sizes)
        if own is None:
            told = ", ".join(f"{p}={sizes[p]}" for p in parts(axis) if p in sizes)
            more = f" with {told}" if told else ""
            raise ValueError(f"shape {y.shape}, want axes {' '.join(axes)}{more}")
        shape += own
    y = np.transpose(y.reshape(shape), _order(single(axes), single(wanted)))
    return np.expand_dims(y, tuple(i for i, axis in enumerate(wanted) if axis == "1"))


def _split(n: int, names: Axes, sizes: Mapping[str, int]) -> list[int] | None:
    """The lengths of the parts of an axis of length n, or None if they do not fit."""
    if len(names) == 1:
        return [n]
    known = {name: sizes[name] for name in names if name in sizes}
    unknown = [name for name in names if name not in known]
    if len(unknown) > 1:
        raise ValueError(
            f"the axis ({' '.join(names)}) of length {n}, which nothing here splits: "
            f"the sizes of {' and '.join(dict.fromkeys(unknown))} are unknown"
        )
    rest = prod(known.values())
    if unknown and rest and n % rest == 0:
        known[unknown[0]] = n // rest
    fits = len(known) == len(set(names)) and prod(known[name] for name in names) == n
    return [known[name] for name in names] if fits else None


def _order(axes: Axes, wanted: Axes) -> list[int]:
    """The position of each wanted axis in `axes`; equal names keep their order."""
    left, order = list(axes), []
    for axis in wanted:
        place = left.index(axis)
        left[place] = ""  # used
        order.append(place)
    return order
