"""What would take too long, or more memory than there is, is not called at its full size.

An implementation is first called on a short beginning of one member of the batch, then on longer
ones, then on more members. What comes next is told from how the times have grown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from refssm._declaration.operator import Operator
from refssm.bench.measuring.memory import available, peak_of
from refssm.bench.measuring.timing import Clock
from refssm.bench.programs.calls import NotTimed, TimedCall
from refssm.bench.work.inputs import beginning, cotangents, members, of_batch
from refssm.bench.work.sizes import Size

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
