"""Knobs of the host build, for a block of test code: `with settings(order=7): …`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

Block = tuple[int, int, int]


@dataclass(frozen=True)
class Count:
    """What one launch did."""

    kernel: str  # "linear_scan<float32, 8>"
    blocks: int
    threads: int
    barriers: int  # arrivals of threads at __syncthreads
    warp_calls: int  # arrivals of lanes at shuffles, votes and __syncwarp
    switches: int  # from one thread to another
    shared: int  # most bytes of shared memory of a block


@dataclass(frozen=True)
class HostSettings:
    """How launches run.

    order: 0 runs thread 0 and block 0 first, 1 the last ones first; above, it is the seed of an
        order that changes during the run.
    only: the blocks to run; None means all. For grids that are too large to run.
    flags: more flags for the C++ compiler.
    counts: each launch appends what it did.
    """

    order: int = 0
    only: tuple[Block, ...] | None = None
    flags: tuple[str, ...] = ()
    counts: list[Count] = field(default_factory=list, compare=False)


_now = [HostSettings()]


def current() -> HostSettings:
    """The settings of launches now."""
    return _now[-1]


@contextmanager
def settings(**changes) -> Iterator[HostSettings]:
    """Change some settings for a block of code; its launches are counted afresh."""
    _now.append(replace(current(), **{"counts": [], **changes}))
    try:
        yield current()
    finally:
        _now.pop()
