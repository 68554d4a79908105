"""An implementation made ready to be timed: arrays in its framework, compiled, copies in turn.

JAX is compiled for these shapes before anything is timed, its arrays are on the device, and a call
ends when the result is there. PyTorch's forward call runs without a record for gradients. A VJP of
a framework's autodiff is one function of cotangents and arguments, with the forward call in it, as
`<name>_vjp` of a mirror is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from refssm.bench.measuring.memory import available
from refssm.bench.programs.program import Program
from refssm.conformance.calling.calls.run import CalledOnce, place
from refssm.conformance.number_types import NumberType, number_type


class NotTimed(Exception):
    """The implementation is not timed on these inputs; the message says why."""


class TimedCall:
    """One implementation, called by `self(i)` on the i-th copy of its inputs.

    Inputs are copied to the device when the call is made; outputs stay there until `outputs`.
    """

    def __init__(self, program: Program, arrays, statics, dtype: str, vjp=False, sliced=False):
        found = program.found
        self.kind: NumberType = number_type(dtype)
        self.run = CalledOnce(found, self.kind, vjp, sliced)
        self.statics, self.vjp, self.made = statics, vjp, found.adapter
        self.arrays = self._narrowed(program, arrays)
        self.items = [self._items()]
        self.function: Callable = self._function(program)
        self.context: Callable[[], AbstractContextManager] = nullcontext
        if program.framework == "torch" and not vjp:
            self.context = import_module("torch").no_grad

    def copy(self, count: int) -> None:
        """Make so many copies of the inputs, as far as there are none."""
        while len(self.items) < count:
            self.items.append(self._items())

    def drop(self) -> None:
        """Free all copies; nothing is called any more."""
        self.items = []

    def __call__(self, i: int = 0) -> Any:
        """The outputs, when they are there."""
        with self.context():
            return [self.function(*given) for given in self.items[i % len(self.items)]]

    def waited(self, i: int = 0) -> Any:
        """The outputs, when the device has computed them."""
        y = self(i)
        self.made.finish()
        return y

    def outputs(self) -> tuple[np.ndarray, ...]:
        """The outputs of one call as NumPy arrays in the catalog's layout."""
        with self.made.inside(self.kind), self.context():
            if self.run.slices:
                entering = self.run.entering(self.arrays, self.statics)
                given = [self.made.give(a, self.kind) for a in entering]
                _, taken = self.run.outputs(given, self.statics)
            else:
                (y,) = self(0)
                taken = tuple(self.made.take(v, self.kind) for v in y)
        return self.run.leaving(taken, self.arrays, self.statics)

    def _narrowed(self, program: Program, arrays) -> list[np.ndarray]:
        """The arguments; NotTimed if the implementation supports only others."""
        only, op = program.found.declared.only, program.op
        if only is None:
            return list(arrays)
        count = len(op.outputs) if self.vjp else 0
        primals = dict(zip(op.inputs, arrays[count:], strict=True))
        kept = only(dict(primals) | self.statics)
        if (
            kept is None
            or any(not np.array_equal(kept[n], a, equal_nan=True) for n, a in primals.items())
            or any(kept.get(n, v) != v for n, v in self.statics.items())
        ):
            raise NotTimed("it does not do this work: its declaration declines these inputs")
        return list(arrays)

    def _items(self) -> list[tuple]:
        """A new copy of the arguments; one tuple for each slice if called slice by slice."""
        run = self.run
        with self.made.inside(self.kind):
            given = [self.made.copied(self.made.give(a, self.kind)) for a in
                     run.entering(self.arrays, self.statics)]  # fmt: skip
        if not run.slices:
            return [tuple(given)]
        leads = [tuple(x.shape[: len(x.shape) - r]) for x, r in zip(given, run.ranks, strict=True)]
        pairs = list(zip(given, leads, strict=True))
        batch = np.broadcast_shapes(*leads)
        return [tuple(x[place(lead, i)] for x, lead in pairs) for i in np.ndindex(*batch)]

    def _function(self, program: Program) -> Callable:
        def called(*given):
            return self.run.raw(given, self.statics)

        if program.framework != "jax":
            return called
        jax: Any = import_module("jax")
        with self.made.inside(self.kind):
            compiled = jax.jit(called).lower(*self.items[0][0]).compile()
        needs = getattr(compiled.memory_analysis(), "temp_size_in_bytes", 0)
        if not program.device and needs > available():
            raise NotTimed(f"it needs {needs / 2**30:.0f} GiB, more than there is")
        return lambda *given: jax.block_until_ready(compiled(*given))
