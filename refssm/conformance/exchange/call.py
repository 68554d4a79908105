"""One call as files in a folder: names, axes, types and sizes of its arrays.

case.txt        what to compute: a word and its values on each line
a.npy, b.npy    the arguments, C order, little-endian; for a gradient the cotangents dx.npy first
x.npy           the output that the program writes
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from refssm._declaration.layout import NO_SIZES, Layout, canonical, length, parts
from refssm._declaration.operator import Operator
from refssm.conformance.exchange import files
from refssm.conformance.judging.verdict import types_in
from refssm.conformance.number_types import NumberType, judged_type
from refssm.conformance.standard import Standard

TEXT = "case.txt"
DECLINED = "declined.txt"  # written for exit code 77, or by the program itself


@dataclass(frozen=True)
class Slot:
    """One array of a call."""

    name: str
    file: str
    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]

    def __str__(self):
        names = ("*".join(parts(axis)) or axis for axis in self.axes)
        sizes = (f"{axis}={n}" for axis, n in zip(names, self.shape, strict=True))
        return " ".join([self.file, self.dtype, *sizes])


@dataclass(frozen=True)
class TypedCall:
    """A call of an operator, or of its VJP, in one type."""

    op: Operator
    vjp: bool
    kind: NumberType
    statics: Mapping[str, int | float]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)  # of axes that are merged with others

    @property
    def name(self) -> str:
        """The name of the called function."""
        return f"{self.op}_vjp" if self.vjp else self.op.name

    def text(self, check: str = "") -> str:
        """The text of case.txt."""
        lines = [f"call {self.name}", f"dtype {self.kind.name}"]
        lines += [f"check {check}"] * bool(check)
        lines += [f"static {name} {value!r}" for name, value in self.statics.items()]
        lines += [f"size {axis} {n}" for axis, n in self.sizes.items()]
        lines += [f"input {slot}" for slot in self.inputs]
        lines += [f"output {slot}" for slot in self.outputs]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path, arrays, check: str = "") -> None:
        """Write case.txt and the arguments into an existing folder."""
        (folder / TEXT).write_text(self.text(check), encoding="utf-8")
        for slot, a in zip(self.inputs, arrays, strict=True):
            files.write(folder / slot.file, a)


def described(
    op: Operator,
    vjp: bool,
    kind: NumberType,
    arrays,
    statics: Mapping,
    layout: Layout | None,
    known: Mapping[str, int] = NO_SIZES,
) -> TypedCall:
    """The call of `op` on arrays in `layout`, by default the catalog's.

    `known` has the sizes of axes that the layout merges.
    """
    told = layout or canonical(op)
    forward = list(zip(op.inputs, told.inputs, strict=True))
    answers = list(zip(op.outputs, told.outputs, strict=True))
    named = [(f"d{y}", axes) for y, axes in answers] * vjp + forward
    placed = [
        (name, axes[len(axes) - a.ndim :], a) for (name, axes), a in zip(named, arrays, strict=True)
    ]
    sizes = {**known, **_sizes(placed, statics)}
    primals = [a for _, _, a in placed[len(op.outputs) * vjp :]]
    if vjp:
        precision = judged_type(list(arrays))
        back = [
            (f"d{n}", axes, a) for n, axes, a in placed[len(op.outputs) :] if n not in op.discrete
        ]
        returned = [(n, axes, a.shape, _gradient_type(a, precision)) for n, axes, a in back]
    else:
        types, absent = types_in(op, primals, Standard.of(kind.name)), {*op.batch_names} - {*sizes}
        kept = [(y, tuple(d for d in axes if d not in absent)) for y, axes in answers]
        returned = [
            (y, axes, tuple(length(d, sizes) for d in axes), dtype)
            for (y, axes), dtype in zip(kept, types, strict=True)
        ]
    alike = Counter(n.lower() for n, *_ in (*placed, *returned))
    inputs = [Slot(n, f"{n}.npy", _named(a.dtype, kind), axes, a.shape) for n, axes, a in placed]
    outputs = [
        # H.npy and h.npy are one file if file names ignore case
        Slot(n, f"{n}_out.npy" if alike[n.lower()] > 1 else f"{n}.npy", _named(t, kind), axes, s)
        for n, axes, s, t in returned
    ]
    merged = {part for slot in (*inputs, *outputs) for part in _merged(slot.axes)}
    shown = {part: length(part, sizes) for part in sorted(merged)}
    return TypedCall(op, vjp, kind, dict(statics), tuple(inputs), tuple(outputs), shown)


def _merged(axes) -> tuple[str, ...]:
    """The parts of merged axes."""
    return tuple(part for axis in axes if len(parts(axis)) > 1 for part in parts(axis))


def _sizes(placed, statics) -> dict[str, int]:
    """The length of each axis: the largest of all arguments, since one may have length 1 there."""
    sizes = {name: int(n) for name, n in statics.items() if isinstance(n, int)}
    for _, axes, a in placed:
        for axis, n in zip(axes, a.shape, strict=True):
            sizes[axis] = max(int(n), sizes.get(axis, 0))
    return sizes


def _gradient_type(a, precision) -> np.dtype:
    return np.dtype(precision if np.iscomplexobj(a) else np.finfo(precision).dtype)


def _named(dtype, kind: NumberType) -> str:
    """The name of a type; for 16-bit types that of `kind`, not of the array with its values."""
    dtype = np.dtype(dtype)
    return kind.name if kind.half and dtype.kind == "f" else dtype.name
