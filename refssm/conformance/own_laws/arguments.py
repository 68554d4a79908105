"""The arguments of one call in the catalog's layout, and the way to an author's layout and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from refssm._declaration.layout import Axes, Layout, arranged, canonical, sizes_of
from refssm._declaration.operator import Operator
from refssm.conformance.calling.recorded import in_order
from refssm.conformance.cases.case import Case
from refssm.conformance.gauges.gauge import Gauges
from refssm.conformance.judging.expected import expect, remembering
from refssm.conformance.number_types import NumberType
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class OwnCall:
    """What the judge drew, the arguments that stand in its place, and what they are judged by."""

    case: Case
    standard: Standard
    layout: Layout | None  # the author's; None if it is the catalog's
    arrays: Arrays  # in the catalog's layout; nobody writes into them
    statics: Mapping[str, Any]
    memory: dict = field(default_factory=dict)  # what is expected of it

    @property
    def op(self) -> Operator:
        """The operator."""
        return self.case.op

    @cached_property
    def usual(self) -> Layout:
        """The catalog's layout."""
        return canonical(self.op)

    @property
    def own(self) -> Layout:
        """The author's layout."""
        return self.layout or self.usual

    def sizes(self) -> dict[str, int]:
        """The core dimensions; ValueError if the arguments do not fit together."""
        return {d: int(n) for d, n in self.op.sizes(*self.arrays, **self.statics).items()}

    def gauges(self, cotangents: Sequence[np.ndarray] | None = None) -> Gauges:
        """What is expected of the outputs, or of the gradients for these cotangents."""
        arrays, vjp = [*self.arrays], None
        if cotangents is not None:
            arrays, vjp = [*cotangents, *arrays], self.op.bare_vjp
        with remembering(self.memory):
            return expect(self.op, arrays, self.statics, vjp, self.standard)

    def changed(self, arrays: Arrays, statics: Mapping[str, Any]) -> OwnCall:
        """The call with other arguments; ValueError if they do not fit together."""
        call = replace(self, arrays=arrays, statics=statics, memory={})
        call.sizes()
        return call

    def shown(self, a: np.ndarray, usual: Axes, own: Axes) -> np.ndarray:
        """A copy of an array in the author's layout, from the catalog's."""
        if self.layout is None:
            return np.array(a)
        omitted = self.layout.omitted
        a = np.squeeze(a, tuple(i for i, axis in enumerate(usual) if axis in omitted))
        return arranged(a, tuple(axis for axis in usual if axis not in omitted), own)

    def shown_arguments(self, arrays: Sequence[np.ndarray]) -> Arrays:
        """Arguments, or gradients, in the author's layout."""
        return tuple(map(self.shown, arrays, self.usual.inputs, self.own.inputs))

    def shown_outputs(self, outputs: Sequence[np.ndarray]) -> Arrays:
        """Outputs, or cotangents, in the author's layout."""
        return tuple(map(self.shown, outputs, self.usual.outputs, self.own.outputs))

    def read(self, a: np.ndarray, usual: Axes, own: Axes, what: str) -> np.ndarray:
        """An array in the catalog's layout, from the author's; ValueError if it has other axes."""
        if self.layout is None:
            return a
        sizes = sizes_of(self.op, self.usual.inputs, self.arrays, self.statics)
        try:
            return in_order(a, own, usual, self.layout.omitted, what, sizes)
        except UsageError as error:
            raise ValueError(f"{error}") from None

    def argument(self, i: int, given: Any) -> np.ndarray:
        """An argument that an author gives, in the catalog's layout; TypeError for other types."""
        name, a = list(self.op.inputs)[i], np.asarray(given)
        if name in self.op.discrete:
            fine = {self.arrays[i].dtype}
        else:
            real = np.finfo(self.case.type.carrier).dtype
            fine = {real} if self.op.inputs[name].real else {real, self.case.type.carrier}
        if a.dtype not in fine:
            wanted = " or ".join(sorted(map(str, fine)))
            raise TypeError(f"`{name}` has type {a.dtype}, want {wanted}: round it first")
        if self.case.type.half and not _holds(a, self.case.type):
            held = self.case.type.name
            raise TypeError(f"`{name}` has values that {held} does not have: round them first")
        return np.array(self.read(a, self.usual.inputs[i], self.own.inputs[i], f"`{name}`"))


def _holds(a: np.ndarray, kind: NumberType) -> bool:
    """True if all numbers of a float32 array are values of a 16-bit type."""
    if a.dtype.kind != "f":
        return True
    return np.array_equal(kind.rounded(a.astype(float), real=True), a, equal_nan=True)
