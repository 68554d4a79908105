"""An implementation made ready to be timed: arrays in its framework, compiled, copies in turn.

JAX is compiled for these shapes before anything is timed, its arrays are on the device, and a call
ends when the result is there. PyTorch's forward call runs without a record for gradients. A VJP of
a framework's autodiff is one function of cotangents and arguments, with the forward call in it, as
`<name>_vjp` of a mirror is.

What would take too long, or more memory than there is, is not called at its full size. An
implementation is first called on a short beginning of one member of the batch, then on longer ones,
then on more members. What comes next is told from how the times have grown.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from refssm._declaration.operator import Operator
from refssm.bench.measuring.timing import Clock, available, peak_of
from refssm.bench.programs.program import Program
from refssm.bench.work.inputs import beginning, cotangents, members, of_batch
from refssm.bench.work.sizes import Size
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


SLOW = 20.0  # seconds of one call
SHORTER = (16, 4, 1)  # parts of the length
MORE = 4  # times as many members in the next call
ENOUGH = 0.1  # seconds of a call of which a longer one's time is told


def refuse_slow(
    op: Operator,
    size: Size,
    primals: Sequence[np.ndarray],
    statics: dict,
    vjp: bool,
    prepared: Callable[[list[np.ndarray], dict], Callable[[], object]],
    clock: Clock = time.perf_counter,
) -> None:
    """NotTimed if one call takes longer than SLOW, or more memory than half of what is free.

    `prepared` makes a call of arguments and keyword arguments.
    """
    before = 0.0
    for share, arrays, given in _parts(op, size, primals, statics, vjp):
        call = prepared(arrays, given)
        begun = clock()
        call()  # imports and compiles, too
        if (took := clock() - begun) > SLOW:
            raise NotTimed(f"a part of the work, 1/{share:g}, takes {took:.0f} s")
        begun = clock()
        used = peak_of(call) or 0
        took = clock() - begun
        if used * share > available() / 2:
            raise NotTimed(f"it needs about {used * share / 2**30:.0f} GiB")
        grown = max(1.0, took / before) if before > 0 else 1.0
        if took * max(grown, min(share, MORE)) > SLOW:
            raise NotTimed(f"a part of the work, 1/{share:g}, takes {took:.1f} s")
        if before > 0 and took * share < SLOW and grown < 2 * MORE:
            return
        before = took


def at_least(
    op: Operator,
    size: Size,
    primals: Sequence[np.ndarray],
    statics: dict,
    vjp: bool,
    prepared: Callable[[list[np.ndarray], dict], TimedCall],
    clock: Clock = time.perf_counter,
) -> tuple[float, TimedCall]:
    """A call of a part of the batch, the smallest that takes ENOUGH seconds, or of all of it.

    With it, how many times the whole work is larger. `prepared` makes a call of arguments.
    """
    whole, count = prod(size.batch.values()), 1
    while True:
        wanted = members(size, count)
        part = of_batch(op, primals, wanted)
        heads = cotangents(op, size, part, statics) if vjp else []
        call, share = prepared([*heads, *part], statics), whole / prod(wanted.values())
        begun = clock()
        call(0)
        if clock() - begun > ENOUGH or share <= 1:
            return share, call
        count *= MORE


def _parts(op, size: Size, primals, statics, vjp) -> Iterator[tuple[float, list, dict]]:
    """How many times the whole work is larger than a part, and the arguments of the part."""
    whole, l = prod(size.batch.values()), size.core.get("l", 0)
    lengths = [l // n for n in SHORTER if l // n >= 64 or n == 1]
    counts = [MORE**k for k in range(1, 12) if MORE**k < whole]
    for length, count in [*((n, 1) for n in lengths), *((l, n) for n in counts)]:
        wanted = members(size, count)
        share = whole / prod(wanted.values()) * (l / length if l else 1)
        if share <= 1:
            return
        part, given = beginning(op, of_batch(op, primals, wanted), statics, length)
        heads = cotangents(op, size, part, given) if vjp else []
        yield share, [*heads, *part], given
