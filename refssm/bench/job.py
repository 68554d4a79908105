"""An operator at one size: the arguments of one call, and what is measured about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.bench.measuring.memory import available, last_cache
from refssm.bench.programs.affordable import at_least, refuse_slow
from refssm.bench.programs.calls import TimedCall
from refssm.bench.results.rows import Work
from refssm.bench.work.flops import flops
from refssm.bench.work.sizes import Size

COPIES = 64
DRAWING = 100  # bytes for each entry that is drawn: double precision, and what makes it valid
Prepared = Callable[[list[np.ndarray], dict], TimedCall]


@dataclass
class Job:
    """What implementations are called with side by side."""

    op: Operator
    size: Size
    statics: dict
    arrays: list[np.ndarray]  # for a VJP with the cotangents first
    primals: list[np.ndarray]
    work: Work

    @classmethod
    def of(cls, op, size: Size, statics, arrays, primals, vjp: bool) -> Job:
        """The job, with the bytes and operations of its work."""
        shapes, types = op.output_shapes(*primals, **statics), op.output_types(*primals)
        outputs = [prod(s) * t.itemsize for s, t in zip(shapes, types, strict=True)]
        gradients = sum(a.nbytes for a in primals)
        moved = sum(a.nbytes for a in arrays) + (gradients if vjp else sum(outputs))
        given = moved, max(outputs), flops(op.name, size, vjp)
        work = Work(op.name, size.letters, size.dtype, vjp, *given)
        return cls(op, size, statics, arrays, primals, work)

    def copies(self, programs: int) -> int:
        """Copies of the inputs: together they do not fit into the last cache, but into memory."""
        one = max(1, sum(a.nbytes for a in self.arrays))
        wanted = 1 + last_cache() // max(1, self.work.bytes)
        room = available() // 4 // (one * max(1, programs))
        return max(1, min(wanted, room, COPIES))

    def refuse_slow(self, prepared: Prepared, clock) -> None:
        """NotTimed if a call takes too long, or too much memory."""
        part = self.op, self.size, self.primals, self.statics, self.work.vjp
        refuse_slow(*part, lambda *given: prepared(*given).waited, clock)

    def beginning(self, prepared: Prepared, clock) -> tuple[float, TimedCall]:
        """A call of a part of the batch that takes long enough, and how often it fits in."""
        part = self.op, self.size, self.primals, self.statics, self.work.vjp
        return at_least(*part, prepared, clock)


def too_large(op: Operator, size: Size) -> str:
    """Why the inputs cannot be drawn here, or ""."""
    letters = {**size.batch, **size.core, "1": 1}
    entries = sum(
        prod(length_of(axis, letters) for axis in (*batch, *dims))
        for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)
    )
    needs = DRAWING * entries
    if needs <= available():
        return ""
    return f"to draw the inputs needs about {needs / 2**30:.0f} GiB, more than is free"
