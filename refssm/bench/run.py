"""One run: for each operator and size, all implementations side by side.

An operator at one size is a job: the arguments of one call, and what is measured about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from statistics import median
from typing import Protocol

import numpy as np

from refssm._declaration.operator import Operator
from refssm._declaration.signature import length_of
from refssm.bench.measuring import accuracy, timing
from refssm.bench.measuring.accuracy import Accuracy, Truth
from refssm.bench.measuring.timing import (
    Clock,
    Timed,
    Timer,
    Times,
    TimingPlan,
    available,
    last_cache,
    peak_of,
)
from refssm.bench.programs.calls import SLOW, NotTimed, TimedCall, at_least, refuse_slow
from refssm.bench.programs.program import (
    MIRROR,
    ON_GPU,
    PEER,
    REFERENCE,
    YOURS,
    Absent,
    Judge,
    Judged,
    Program,
    declared_type,
    ours,
    peers,
)
from refssm.bench.results.rows import FAILED, REFUSED, SKIPPED, Row, Work, WorkRows
from refssm.bench.work.flops import flops
from refssm.bench.work.inputs import case_of, cotangents, drawn, repeated
from refssm.bench.work.sizes import Size, alone, size_of
from refssm.conformance.calling.finding import sentence

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


# seconds of one implementation and size
BUDGET = {"small": 0.1, "paper": 2.0, "large": 4.0, "one": 0.5}
AGAIN = 1.0  # seconds: what takes longer is called once before it is timed
ON_CARD = 10  # calls in a timing on the card at most: the cache is made cold before each
TRUTH = 1.0  # seconds for the truth where a card takes part: the run is to be short
PAUSE = 0.03  # seconds before a timing: OpenBLAS's threads spin for so long after their work
Tick = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BenchSettings:
    """What to time and for how long."""

    sizes: str = "small"
    peers: bool = False
    vjp: bool = False
    dtype: str = ""  # the usual type of each operator
    seconds: float = 0.0  # of one implementation and size; 0: the usual time of `sizes`
    device: str = ""  # "gpu": the mirrors on the GPU, too, and peers on the card

    @property
    def budget(self) -> float:
        """Seconds of one implementation and size."""
        return self.seconds or BUDGET[self.sizes]


class Timing(Protocol):
    """A card, as a run needs it; `measuring.card` has one of CuPy."""

    def timer(self, call: Timed, framework: str) -> Timer: ...
    def peak(self, call: Callable[[], object], framework: str) -> int | None: ...
    def release(self) -> None: ...


@dataclass
class Ready:
    """A call that may be timed, its plan, and its row without times."""

    call: Timed
    plan: TimingPlan
    row: Row
    share: float = 1.0  # how many times the whole work is larger than what is called


@dataclass
class _Judged(Ready):
    """The same of a program that the judge accepts."""

    call: TimedCall
    program: Program = field(kw_only=True)
    judged: Judged = field(kw_only=True)


class SideBySide:
    """Calls that are timed in turn, and the rows of a work: with the times that there are."""

    def __init__(self, work: Work, made: Sequence[Ready | Row], copies: int = 1):
        self.work, self.made, self.copies = work, made, copies
        self.ready = [m for m in made if isinstance(m, Ready)]
        self.times = Times([[] for _ in self.ready])

    def run(self, tick: Tick, clock: Clock, pause: Callable[[], None]) -> None:
        """Time all of them."""
        timing.interleaved(
            [r.call for r in self.ready],
            [r.plan for r in self.ready],
            clock,
            lambda done, count: tick(f"{self.work.call}: timing", done, count),
            self.times,
            pause,
        )

    def group(self) -> WorkRows:
        """The rows of what could be timed, and of what could not."""
        place = {id(r): k for k, r in enumerate(self.ready)}
        rows = [self._timed(m, place[id(m)]) if isinstance(m, Ready) else m for m in self.made]
        return WorkRows(self.work, rows)

    def _timed(self, ready: Ready, k: int) -> Row:
        """The row with its times, or with what it raised."""
        if k in self.times.failed:
            message = f"raised {sentence(self.times.failed[k])}"
            return replace(ready.row, status=FAILED, message=message)
        seconds = tuple(ready.share * s for s in self.times.seconds[k])
        return replace(ready.row, seconds=seconds, copies=1 if ready.row.device else self.copies)


class Bench:
    """A run. `partial` has the rows of what was running when it was interrupted."""

    def __init__(
        self,
        settings: BenchSettings,
        tick: Tick = lambda *what: None,
        clock: Clock = time.perf_counter,
        judge: Judge | None = None,
        sleep: Callable[[float], None] = time.sleep,
        card: Timing | None = None,
    ):
        self.settings, self.tick, self.clock, self.sleep = settings, tick, clock, sleep
        self.judge, self.card = judge or Judge(tick), card
        self.partial: WorkRows | None = None

    def groups(self, asked: Iterable[tuple[Operator, list[Program]]]) -> Iterator[WorkRows]:
        """The rows of each operator, forward and then, if so wanted, VJP."""
        for op, own in asked:
            for size in self._sizes(op, own):
                yield from self._at(op, size, own)

    def _sizes(self, op: Operator, own: list[Program]) -> list[Size]:
        """The size asked for; on a card the same with a batch of one, too."""
        usual = size_of(op, self.settings.sizes)
        size = replace(usual, dtype=self.settings.dtype or declared_type(op, usual.dtype, own))
        single = alone(size)
        return [size, single] if self.card is not None and single != size else [size]

    def _at(self, op: Operator, size: Size, own: list[Program]) -> Iterator[WorkRows]:
        if reason := too_large(op, size):
            row = Row("every implementation", REFERENCE, "", SKIPPED, reason)
            yield WorkRows(Work(op.name, size.letters, size.dtype, False), [row])
            return
        self.tick(f"{op}: drawing inputs", 0, 0)
        primals, statics = self._drawn(op, size), case_of(op, size).statics
        for vjp in (False, True) if self.settings.vjp else (False,):
            if vjp and not op.differentiable:
                continue
            given = cotangents(op, size, primals, statics) if vjp else []
            job = Job.of(op, size, statics, [*given, *primals], primals, vjp)
            yield self._group(job, self._programs(op, own))

    def _drawn(self, op: Operator, size: Size) -> list:
        part = size_of(op, "paper", size.dtype)
        if self.card is not None and self.settings.sizes == "large" and size.core == part.core:
            least = {axis: min(n, size.batch[axis]) for axis, n in part.batch.items()}
            part = replace(part, batch=least)
            return repeated(op, drawn(op, part), part, size)
        return drawn(op, size)

    def _programs(self, op: Operator, own: list[Program]) -> list[Program | Absent]:
        device = self.settings.device
        found = [*ours(op, device), *(peers(op, device) if self.settings.peers else ()), *own]
        if own:  # a mirror that is given as the user's own is there twice otherwise
            theirs = {program.found.forward for program in own}
            found = [
                p for p in found
                if p in own or not (isinstance(p, Program) and p.found.forward in theirs)
            ]  # fmt: skip
        return found

    def _group(self, job: Job, programs: list[Program | Absent]) -> WorkRows:
        made = [self._made(job, program) for program in programs]
        ready = [m for m in made if isinstance(m, _Judged)]
        run = SideBySide(job.work, made, job.copies(len(ready)))
        try:
            for r in ready:
                r.call.copy(1 if r.row.device else run.copies)  # a card's cache is made cold
            pause = partial(self.sleep, min(PAUSE, self.settings.budget / 100))
            run.run(self.tick, self.clock, pause)
            for r in ready:
                r.call.drop()
            if self.card is not None:
                self.card.release()
            self._add_accuracy(job, ready)
        except KeyboardInterrupt:
            self.partial = run.group()
            raise
        return run.group()

    def _made(self, job: Job, program: Program | Absent) -> _Judged | Row:
        """A call that may be timed, or a row that says why there is none."""
        if isinstance(program, Absent):
            return Row(
                program.label, PEER, program.label.partition(":")[0], SKIPPED, program.message
            )
        vjp, dtype = job.work.vjp, job.size.dtype
        empty = Row(program.label, program.kind, program.library, device=program.device)
        if program.device and self.card is None:
            told = "its arrays are on a card; `--device gpu` times it"
            return replace(empty, status=SKIPPED, message=told)
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

    def _ready(self, job: Job, program: Program, judged: Judged, row: Row) -> _Judged:
        def prepared(arrays, statics) -> TimedCall:
            return TimedCall(program, arrays, statics, job.size.dtype, job.work.vjp, judged.sliced)

        share = 1.0
        if self.card is not None and program.kind == REFERENCE:
            share, call = job.beginning(prepared, self.clock)
        else:
            if program.kind not in (MIRROR, ON_GPU) and program.framework != "jax":
                job.refuse_slow(prepared, self.clock)
            call = prepared(job.arrays, job.statics)
        if program.kind in (MIRROR, ON_GPU, YOURS):
            call.waited()  # compiles: its time and memory are not those of a call
        took, peak = self._first(call, program)
        if program.kind == PEER and took > SLOW:  # grown faster than its parts told
            raise NotTimed(f"a call takes {took:.0f} s")
        if took < AGAIN:  # the first call fills caches
            took, peak = self._first(call, program)
        row = replace(row, peak=peak if share == 1 else None, notes=_notes(call, share))
        if program.device and self.card is not None:
            plan, row = self._on_card(call, program, took, row)
        else:
            least = 1 if program.kind == REFERENCE else timing.LEAST
            plan = TimingPlan.of(took, self.settings.budget, least)
        row = replace(row, repeats=plan.repeats)
        return _Judged(call, plan, row, share, program=program, judged=judged)

    def _on_card(
        self, call: TimedCall, program: Program, took: float, row: Row
    ) -> tuple[TimingPlan, Row]:
        """The plan of a call on the card, and the row with the time that a user waits."""
        assert self.card is not None
        waits = [self._waits(call) for _ in range(timing.LEAST if took < AGAIN else 1)]
        plan = TimingPlan.of(took, self.settings.budget, most=ON_CARD)
        plan = replace(plan, timer=self.card.timer(call, program.framework))
        return plan, replace(row, latency=median(waits))

    def _waits(self, call: TimedCall) -> float:
        begun = self.clock()
        call.waited()
        return self.clock() - begun

    def _first(self, call: TimedCall, program: Program) -> tuple[float, int | None]:
        """Seconds and peak memory of one call."""
        took = 0.0

        def timed():
            nonlocal took
            begun = self.clock()
            y = call.waited()
            took = self.clock() - begun
            return y

        if program.device and self.card is not None:
            peak = self.card.peak(timed, program.framework)
        else:
            peak = peak_of(timed)
        if not took:
            timed()
        return took, peak

    def _add_accuracy(self, job: Job, ready: list[_Judged]) -> None:
        """Put accuracies into the rows."""
        if not ready or not job.primals or job.op.contract.basis_free:
            return
        self.tick(f"{job.work.call}: the truth", 0, 0)
        seconds = accuracy.SECONDS if self.card is None else TRUTH
        truth = Truth(job.op, job.primals, job.statics, job.size, job.work.vjp, seconds)
        there = truth.compute(self.clock)
        for r in ready:
            self.tick(f"{job.work.call}: accuracy of {r.program.label}", 0, 0)
            found = Accuracy(r.judged.ratio, r.judged.bits, None, "the judge's cases")
            try:
                if there:
                    how = job.size.dtype, job.work.vjp, r.judged.sliced
                    part = TimedCall(r.program, truth.arrays, truth.statics, *how)
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


def _notes(call: TimedCall, share: float) -> tuple[str, ...]:
    """What a reader must know about how it was called."""
    notes = ("called slice by slice",) if call.run.slices else ()
    part = f"called on 1/{share:g} of the batch; the time is {share:g} times that of the part"
    return (*notes, part) if share != 1 else notes
