"""One run: for each operator and size, all implementations side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from refssm._operator import Operator
from refssm._signature import length_of
from refssm.bench.measuring import timing
from refssm.bench.measuring.accuracy import Accuracy, Truth
from refssm.bench.measuring.memory import available, last_cache, peak_of
from refssm.bench.measuring.timing import Clock, Plan, Times
from refssm.bench.programs.affordable import SLOW, refuse_slow
from refssm.bench.programs.calls import Call, NotTimed
from refssm.bench.programs.judged import Judge, Judged
from refssm.bench.programs.program import (
    MIRROR,
    PEER,
    REFERENCE,
    YOURS,
    Absent,
    Program,
    ours,
    peers,
)
from refssm.bench.results.rows import FAILED, REFUSED, SKIPPED, Group, Row, Work
from refssm.bench.work.flops import flops
from refssm.bench.work.inputs import case_of, cotangents, drawn
from refssm.bench.work.sizes import Size, size_of
from refssm.conformance.calling.finding import sentence

BUDGET = {"small": 0.1, "paper": 2.0, "large": 4.0}  # seconds of one implementation and size
COPIES = 64
AGAIN = 1.0  # seconds: what takes longer is called once before it is timed
DRAWING = 100  # bytes for each entry that is drawn: double precision, and what makes it valid
PAUSE = 0.03  # seconds before a timing: OpenBLAS's threads spin for so long after their work
Tick = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Settings:
    """What to time and for how long."""

    sizes: str = "small"
    peers: bool = False
    vjp: bool = False
    dtype: str = ""  # the usual type of each operator
    seconds: float = 0.0  # of one implementation and size; 0: the usual time of `sizes`

    @property
    def budget(self) -> float:
        """Seconds of one implementation and size."""
        return self.seconds or BUDGET[self.sizes]


@dataclass
class _Job:
    """An operator at one size: the arguments of one call and what is measured about it."""

    op: Operator
    size: Size
    statics: dict
    arrays: list[np.ndarray]  # for a VJP with the cotangents first
    primals: list[np.ndarray]
    work: Work


@dataclass
class _Ready:
    """A call that may be timed, its plan, and its row without times."""

    program: Program
    call: Call
    plan: Plan
    row: Row
    judged: Judged


class Bench:
    """A run. `partial` has the rows of what was running when it was interrupted."""

    def __init__(
        self,
        settings: Settings,
        tick: Tick = lambda *what: None,
        clock: Clock = time.perf_counter,
        judge: Judge | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ):
        self.settings, self.tick, self.clock, self.sleep = settings, tick, clock, sleep
        self.judge = judge or Judge(tick)
        self.partial: Group | None = None

    def groups(self, asked: Iterable[tuple[Operator, list[Program]]]) -> Iterator[Group]:
        """The rows of each operator, forward and then, if so wanted, VJP."""
        for op, own in asked:
            size = size_of(op, self.settings.sizes, self.settings.dtype)
            if reason := _too_large(op, size):
                letters = {**size.batch, **size.core, **size.given}
                row = Row("every implementation", REFERENCE, "", SKIPPED, reason)
                yield Group(Work(op.name, letters, size.dtype, False), [row])
                continue
            self.tick(f"{op}: drawing inputs", 0, 0)
            primals, statics = drawn(op, size), case_of(op, size).statics
            for vjp in (False, True) if self.settings.vjp else (False,):
                if vjp and not op.differentiable:
                    continue
                given = cotangents(op, size, primals, statics) if vjp else []
                job = _job(op, size, statics, [*given, *primals], primals, vjp)
                yield self._group(job, self._programs(op, own))

    def _programs(self, op: Operator, own: list[Program]) -> list[Program | Absent]:
        found = [*ours(op), *(peers(op) if self.settings.peers else ()), *own]
        if own:  # a mirror that is given as the user's own is there twice otherwise
            theirs = {program.found.forward for program in own}
            found = [
                p for p in found
                if p in own or not (isinstance(p, Program) and p.found.forward in theirs)
            ]  # fmt: skip
        return found

    def _group(self, job: _Job, programs: list[Program | Absent]) -> Group:
        made = [self._made(job, program) for program in programs]
        ready = [m for m in made if isinstance(m, _Ready)]
        copies = _copies(job, len(ready))
        times = Times([[] for _ in ready])

        def rows() -> list[Row]:
            place = {id(r): k for k, r in enumerate(ready)}
            return [
                _timed(m, times, place[id(m)], copies) if isinstance(m, _Ready) else m for m in made
            ]

        try:
            for r in ready:
                r.call.copy(copies)
            timing.interleaved(
                [r.call for r in ready],
                [r.plan for r in ready],
                self.clock,
                lambda done, count: self.tick(f"{job.work.call}: timing", done, count),
                times,
                partial(self.sleep, min(PAUSE, self.settings.budget / 100)),
            )
            for r in ready:
                r.call.drop()
            self._add_accuracy(job, ready)
        except KeyboardInterrupt:
            self.partial = Group(job.work, rows())
            raise
        return Group(job.work, rows())

    def _made(self, job: _Job, program: Program | Absent) -> _Ready | Row:
        """A call that may be timed, or a row that says why there is none."""
        if isinstance(program, Absent):
            library = program.label.partition(":")[0]
            return Row(program.label, "peer", library, SKIPPED, program.message)
        vjp, dtype = job.work.vjp, job.size.dtype
        empty = Row(program.label, program.kind, program.library)
        if vjp and program.found.vjp is None and not program.found.declared.vjp:
            return replace(empty, status=SKIPPED, message="it has no gradient")
        self.tick(f"{job.work.call}: judging {program.label}", 0, 0)
        judged = self.judge.verdict(program, dtype, vjp)
        if not judged.accepted:
            return replace(empty, status=REFUSED, message=judged.line)
        self.tick(f"{job.work.call}: first calls of {program.label}", 0, 0)
        try:
            return self._ready(job, program, judged, replace(empty, message=judged.line))
        except NotTimed as reason:
            return replace(empty, status=SKIPPED, message=str(reason))
        except Exception as error:
            return replace(empty, status=FAILED, message=f"raised {sentence(error)}")

    def _ready(self, job: _Job, program: Program, judged: Judged, row: Row) -> _Ready:
        def prepared(arrays, statics) -> Call:
            return Call(program, arrays, statics, job.size.dtype, job.work.vjp, judged.sliced)

        if program.kind not in (MIRROR,) and program.framework != "jax":
            part = job.op, job.size, job.primals, job.statics, job.work.vjp
            refuse_slow(*part, lambda *given: partial(prepared(*given), 0), self.clock)
        call = prepared(job.arrays, job.statics)
        if program.kind in (MIRROR, YOURS):
            call(0)  # compiles: its time and memory are not those of a call
        took, peak = self._first(call)
        if program.kind == PEER and took > SLOW:  # grown faster than its parts told
            raise NotTimed(f"a call takes {took:.0f} s")
        if took < AGAIN:  # the first call fills caches
            took, peak = self._first(call)
        least = 1 if program.kind == REFERENCE else timing.LEAST
        plan = Plan.of(took, self.settings.budget, least)
        notes = ("called slice by slice",) if call.run.slices else ()
        row = replace(row, peak=peak, repeats=plan.repeats, notes=notes)
        return _Ready(program, call, plan, row, judged)

    def _first(self, call: Call) -> tuple[float, int | None]:
        """Seconds and peak memory of one call."""
        took = 0.0

        def timed():
            nonlocal took
            begun = self.clock()
            y = call(0)
            took = self.clock() - begun
            return y

        peak = peak_of(timed)
        if peak is None:
            timed()
        return took, peak

    def _add_accuracy(self, job: _Job, ready: list[_Ready]) -> None:
        """Put accuracies into the rows."""
        if not ready or not job.primals or job.op.contract.basis_free:
            return
        self.tick(f"{job.work.call}: the truth", 0, 0)
        truth = Truth(job.op, job.primals, job.statics, job.size, job.work.vjp)
        there = truth.compute(self.clock)
        for r in ready:
            self.tick(f"{job.work.call}: accuracy of {r.program.label}", 0, 0)
            found = Accuracy(r.judged.ratio, r.judged.bits, None, "the judge's cases")
            try:
                if there:
                    how = job.size.dtype, job.work.vjp, r.judged.sliced
                    part = Call(r.program, truth.arrays, truth.statics, *how)
                    found = truth.accuracy(part.outputs())
            except Exception as error:
                r.row = replace(r.row, notes=(*r.row.notes, f"accuracy: {sentence(error)}"))
            r.row = replace(
                r.row,
                ratio=found.ratio,
                bits=found.bits,
                relative=found.relative,
                accuracy_at=found.at,
            )


def _too_large(op: Operator, size: Size) -> str:
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


def _job(op, size: Size, statics, arrays, primals, vjp: bool) -> _Job:
    shapes, types = op.output_shapes(*primals, **statics), op.output_types(*primals)
    outputs = [prod(s) * t.itemsize for s, t in zip(shapes, types, strict=True)]
    gradients = sum(a.nbytes for a in primals)
    moved = sum(a.nbytes for a in arrays) + (gradients if vjp else sum(outputs))
    letters = {**size.batch, **size.core, **size.given}
    work = Work(op.name, letters, size.dtype, vjp, moved, max(outputs), flops(op.name, size, vjp))
    return _Job(op, size, statics, arrays, primals, work)


def _copies(job: _Job, programs: int) -> int:
    """Copies of the inputs: together they do not fit into the last cache, but into memory."""
    one = max(1, sum(a.nbytes for a in job.arrays))
    wanted = 1 + last_cache() // max(1, job.work.bytes)
    room = available() // 4 // (one * max(1, programs))
    return max(1, min(wanted, room, COPIES))


def _timed(ready: _Ready, times: Times, k: int, copies: int) -> Row:
    """The row with its times, or with what it raised."""
    if k in times.failed:
        message = f"raised {sentence(times.failed[k])}"
        return replace(ready.row, status=FAILED, message=message)
    return replace(ready.row, seconds=tuple(times.seconds[k]), copies=copies)
