"""How the time of a mirror grows with the length: l from 2^10 to 2^20, and the fitted slope."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from refssm._declaration.operator import Operator
from refssm.bench.measuring.timing import SHORT, Clock, available, median, one
from refssm.bench.programs.calls import TimedCall
from refssm.bench.programs.program import MIRROR, Judge, ours
from refssm.bench.work.inputs import case_of, drawn
from refssm.bench.work.sizes import of_length
from refssm.conformance.calling.finding import sentence
from refssm.conformance.cases.sizes import core_dims

LENGTHS = tuple(2**k for k in range(10, 21))
LONGEST = 5.0  # seconds of one call: no longer length is tried
TIMES = 7
STEEPEST, OF_TRANSFORMS = 1.1, 1.2  # slopes that are allowed


@dataclass(frozen=True)
class Growth:
    """Times of one call at some lengths, and the slope of their logarithms."""

    name: str
    dtype: str
    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    message: str = ""  # why there are no more lengths

    @property
    def slope(self) -> float | None:
        """The least-squares slope of log time against log length; None for fewer than three."""
        return _slope(self.lengths, self.seconds)

    @property
    def late(self) -> float | None:
        """The slope of the longer half: short calls take as long as their start."""
        half = len(self.lengths) // 2
        return _slope(self.lengths[half:], self.seconds[half:])

    @property
    def record(self) -> dict:
        """The record in the JSON file."""
        found = asdict(self) | {"slope": self.slope, "late": self.late}
        return {**found, "lengths": list(self.lengths), "seconds": list(self.seconds)}


def _slope(lengths, seconds) -> float | None:
    if len(lengths) < 3:
        return None
    return float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])


def growth_of(
    operators: Iterable[Operator],
    judge: Judge,
    tick: Callable[[str, int, int], None] = lambda *what: None,
    clock: Clock = time.perf_counter,
    lengths: Iterable[int] = (),
) -> Iterator[Growth]:
    """The growth of the forward mirror of each operator that has a length."""
    for op in operators:
        program = next((p for p in ours(op) if p.kind == MIRROR), None)
        if program is None or "l" not in core_dims(op):
            continue
        dtype = of_length(op, 1).dtype
        tick(f"{op}: judging the mirror", 0, 0)
        judged = judge.verdict(program, dtype, False)
        if not judged.accepted:
            yield Growth(op.name, dtype, (), (), f"refused: {judged.line}")
            continue
        yield _grown(op, program, dtype, [*(lengths or LENGTHS)], tick, clock)


def _grown(op, program, dtype, lengths, tick, clock) -> Growth:
    done, seconds, message = [], [], ""
    for position, l in enumerate(lengths):
        tick(f"{op}: growth, l = {l}", position, len(lengths))
        size = of_length(op, l)
        try:
            arrays = drawn(op, size)
            call = TimedCall(program, arrays, case_of(op, size).statics, dtype)
            took = _median(call, clock)
        except Exception as error:
            message = f"l = {l} raised {sentence(error)}"
            break
        done.append(l)
        seconds.append(took)
        ratio = lengths[position + 1] / l if position + 1 < len(lengths) else 1
        if took * ratio**2 > LONGEST:  # it may be quadratic
            message = f"stopped at l = {l}: {took:.2g} s"
            break
        if 8 * sum(a.nbytes for a in arrays) * ratio > available():
            message = f"stopped at l = {l}: memory"
            break
    return Growth(op.name, dtype, tuple(done), tuple(seconds), message)


def _median(call: TimedCall, clock: Clock) -> float:
    """The median of some timings after two calls that do not count."""
    call(0)
    took = max(one(call, 1, 0, clock), 1e-9)
    repeats = int(max(1, min(100, SHORT / took)))
    return median([one(call, repeats, 0, clock) for _ in range(TIMES)]).value


def lines(found: Iterable[Growth]) -> list[str]:
    """A line for each operator."""
    said = []
    for g in found:
        slope = "" if g.slope is None else f"slope {g.slope:.2f}"
        slope += "" if g.late is None else f" ({g.late:.2f} in the longer half)"
        ends = ""
        if g.lengths:
            first, last = g.seconds[0], g.seconds[-1]
            ends = f"l = {g.lengths[0]}: {first:.2e} s, l = {g.lengths[-1]}: {last:.2e} s"
        said.append("   ".join(part for part in (g.name, g.dtype, slope, ends, g.message) if part))
    return said
