"""Helpers of the tests of `refssm bench`: a clock that stands still, and programs that turn it."""

from refssm.bench.programs.program import YOURS, Judge, Judged, Program
from refssm.bench.results.rows import Row, Work, WorkRows
from refssm.conformance.calling.implementation import Found
from refssm.scan import LINEAR_SCAN
from refssm.testing import Declaration

KERNEL = 1e-4  # seconds of a call on the stand-in for a card


class Clock:
    """Seconds that pass only where a program says so, and a few for each look."""

    def __init__(self, look=1e-6):
        self.now, self.look = 0.0, look

    def __call__(self):
        self.now += self.look
        return self.now


class AcceptsAll(Judge):
    """A judge that accepts everything."""

    def verdict(self, program, dtype, vjp):
        return Judged(True, f"pass {program.label}")


class StandIn:
    """A card whose every call takes KERNEL seconds."""

    def __init__(self):
        self.released = 0

    def timer(self, call, framework):
        def timed(call, repeats, first):
            call(first)
            return KERNEL

        return timed

    def peak(self, call, framework):
        call()
        return 1234

    def release(self):
        self.released += 1


def scan(a, b):
    """The bare reference."""
    return LINEAR_SCAN.reference(a, b)


def program(function=scan, label="mine.py::f", kind=YOURS, vjp=None, op=LINEAR_SCAN, **declared):
    """A program that is a function of this process."""
    found = Found(op, function, vjp, declared=Declaration(op.name, **declared))
    return Program(label, kind, "here", found)


def taking(clock, seconds, function=scan):
    """The function, which takes so many seconds of a clock."""

    def slow(*args, **statics):
        clock.now += seconds
        return function(*args, **statics)

    return slow


def work(name="linear_scan", vjp=False, **size):
    """A work of two channels."""
    return Work(name, size or {"b": 2, "l": 8, "n": 4}, "complex64", vjp, 1000, 500, 2000.0)


def row(label, *seconds, kind="peer", library="", **more):
    """A row with these times."""
    library = library or label.partition(":")[0]
    return Row(label, kind, library, seconds=tuple(map(float, seconds)), **more)


def group(mirror=(1.0,) * 7, jax=(2.0,) * 7, **more):
    """A mirror beside JAX."""
    rows = [row("mirror", *mirror, kind="mirror", library="numba"), row("jax: one", *jax)]
    return WorkRows(work(**more), rows)
