"""Saved arrays: an author's inputs, and outputs that replace calls of an implementation."""

from pathlib import Path

import numpy as np

from refssm._declaration.layout import Layout, canonical, in_layout, parse, restored, sizes_of
from refssm.conformance.calling.adapters.numpy_arrays import (
    BFLOAT16,
    bfloat16,
    carried,
    without_bfloat16,
)
from refssm.conformance.calling.finding import operator_named, short
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Closed, Outcome
from refssm.conformance.file_errors import UNREADABLE, arrays
from refssm.conformance.number_types import judged_type, number_type
from refssm.conformance.usage_error import UsageError


def stored(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or of an .npy file as ""; UsageError if unreadable."""
    try:
        given = arrays(path)
    except UNREADABLE as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise UsageError(f"{path}: not a readable .npz file: {short(f'{why}')}") from None
    if not given or ("" in given and path.suffix != ".npy"):
        raise UsageError(f"{path}: not an .npz file with arrays")
    return {name: _typed(a, path) for name, a in given.items()}


def _typed(a: np.ndarray, path: Path) -> np.ndarray:
    """The array; NumPy saves bfloat16 of ml_dtypes as two bytes without their type."""
    if a.dtype != "V2":
        return a
    if lacking := without_bfloat16():
        raise UsageError(f"{path}: {lacking[BFLOAT16]}")
    return a.view(bfloat16())


def in_order(a, axes, wanted, omitted, what, sizes) -> np.ndarray:
    """An array with its axes in the catalog's order; batch axes in `omitted` get length 1."""
    kept = tuple(axis for axis in wanted if axis not in omitted)
    try:
        a = restored(a, axes, kept, sizes)
    except ValueError as error:
        raise UsageError(f"{what} has {error}") from None
    return np.expand_dims(a, tuple(i for i, axis in enumerate(wanted) if axis in omitted))


class Recorded(Closed):
    """Stands in for an implementation by returning saved outputs: `--output out.npy`."""

    def __init__(self, name: str, path: Path, layout: str = ""):
        op, given = operator_named(name), stored(path)
        wanted: list[str] = [*op.outputs] if "" not in given else [""]
        absent = [y for y in wanted if y not in given]
        if absent or len(wanted) != len(op.outputs):
            needs = f".npz with {', '.join(op.outputs)}"
            needs += ", or .npy" if len(op.outputs) == 1 else ""
            raise UsageError(f"{path} does not have the outputs of {op}: wanted {needs}")
        self.op, self.path, self.outputs = op, path, tuple(given[y] for y in wanted)
        self.layout: Layout | None = None
        if layout:
            try:
                self.op = in_layout(op, layout)
                self.layout = parse(self.op, layout)
            except ValueError as error:
                raise UsageError(str(error)) from None
            for y, axes in zip(self.outputs, self.layout.outputs, strict=True):
                if y.ndim != len(axes):
                    raise UsageError(f"{path} has shape {y.shape}, want axes {' '.join(axes)}")
        self.found = [Offer(op.name, layout=layout)]

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """The saved outputs, for any arguments."""
        del name
        kind = number_type(how.get("dtype") or judged_type(arrays))
        try:
            outputs = self._canonical(arrays, statics)
        except UsageError as error:  # also of a call with other sizes than the saved ones
            return Outcome("malformed", message=str(error))
        return Outcome("ok", tuple(carried(y, y.dtype.name, kind) for y in outputs))

    def _canonical(self, arrays, statics) -> tuple[np.ndarray, ...]:
        """The outputs in the catalog's layout, from the declared one."""
        if self.layout is None:
            return self.outputs
        usual, omitted = canonical(self.op), self.layout.omitted
        sizes = sizes_of(self.op, usual.inputs, arrays, statics)
        pairs = zip(self.outputs, self.layout.outputs, usual.outputs, strict=True)
        return tuple(in_order(y, a, w, omitted, f"{self.path}", sizes) for y, a, w in pairs)
