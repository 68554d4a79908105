"""A kernel's declaration, the text that is compiled, and where launches go.

A `Kernel` is declared once: the launchers, the compilers' gate and the model of traffic read it.
A launch goes to the card, to the host build, or to whoever records it; both are imported by name,
at the first launch, because they import this file.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

KERNELS = Path(__file__).parents[1] / "kernels"
INCLUDE = re.compile(r'^#include "([\w./]+)"\n', re.MULTILINE)
PLACES = {"": "refssm_gpu._launching.card", "host": "refssm_gpu._host.launch"}
Instance = tuple[str | int, ...]  # template arguments
Grid = tuple[int, ...]  # blocks along each axis
# what can limit a kernel: bytes, arithmetic, the special function unit, steps that wait for each
# other, or the launch itself, which costs more than the work
BOUNDS = ("memory", "flops", "special functions", "latency", "launch")
GRID = (2**31 - 1, 65535, 65535)  # most blocks along each axis, for every card
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
FIELDS = (*REALS, *COMPLEX)


@dataclass(frozen=True)
class MarkedRows:
    """For a kernel that computes marked rows only: the blocks of all other rows return at once.

    Results of a usual call mark no row, so the model of traffic does not count such a launch. With
    a null pointer in place of the marks the kernel computes all rows, and the launch counts.
    """

    parameter: str  # of the kernel: the array of marks, one for each row
    rows: str  # which rows are marked, in words: "whose results are not finite"


@dataclass(frozen=True)
class Kernel:
    """A template `__global__` function of a file in `refssm_gpu/kernels`, and its instances.

    `instances` are the template arguments it is compiled for; a call with others is refused, for
    nothing would have checked them.
    """

    source: str  # "scan/linear_scan.cuh"
    name: str  # of the function
    instances: tuple[Instance, ...]
    block: int  # threads of a block
    registers: int  # most registers a thread may have; the compilers' gate checks it
    double_inside: bool = False  # computes in double precision also for single precision: tables
    marked: MarkedRows | None = None  # computes the marked rows only
    bound: str = ""  # what limits it on a card at large sizes, one of BOUNDS; the model asks

    def __call__(
        self, instance: Instance, grid: Sequence[int], *arguments: Any, shared: int = 0
    ) -> None:
        """Launch it on a grid of blocks; nothing happens if the grid is empty.

        Arguments are arrays, NumPy scalars of the kernel's own type (never Python numbers), or an
        array of one record, which is passed by value. `shared` is dynamic shared memory in bytes.
        """
        instance = tuple(instance)
        assert instance in self.instances, f"{self.expression(instance)} is not declared"
        if any(n > most for n, most in zip(grid, GRID, strict=False)):
            message = f"a grid of {tuple(map(int, grid))} blocks; a card takes {GRID} at most"
            raise ValueError(f"{self.expression(instance)}: {message}, so split the batch")
        if all(grid):  # CuPy would raise a zero to one
            target().launch(self, instance, tuple(map(int, grid)), arguments, shared)

    def expression(self, instance: Instance) -> str:
        """The instance's name in C++: "linear_scan<float32, 8>"."""
        return f"{self.name}<{', '.join(map(str, instance))}>"


def instances(*choices: Sequence[str | int]) -> tuple[Instance, ...]:
    """All combinations of the template arguments."""
    made: tuple[Instance, ...] = ((),)
    for values in choices:
        made = tuple((*instance, value) for instance in made for value in values)
    return made


def record(*counts: str, **others: type) -> np.dtype:
    """A struct that kernels take by value: numbers of 64 bits, then fields of other types."""
    fields = [(name, np.int64) for name in counts]
    return np.dtype([*fields, *others.items()], align=True)


@cache
def inlined(name: str) -> str:
    """The file `name` of the folder of kernels; each of our headers once, where it is first.

    CuPy keeps compiled kernels by the text that it gets and does not look into included files, so a
    changed header would be missed: the compiler gets one text.
    """
    return _inlined(KERNELS / name, set())


def _inlined(path: Path, seen: set[Path]) -> str:
    def text(match: re.Match[str]) -> str:
        header = (path.parent / match[1]).resolve()
        if not header.is_relative_to(KERNELS.resolve()):  # the host build's own header
            return match[0]
        if header in seen:
            return ""
        seen.add(header)
        return _inlined(header, seen)

    seen.add(path.resolve())
    return INCLUDE.sub(text, path.read_text(encoding="utf-8").replace("#pragma once\n", ""))


class Target(Protocol):
    """What takes launches."""

    array: Any  # the type of its arrays
    multiprocessors: int  # that run blocks at the same time

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Start one kernel; on a card it need not have ended when this returns."""


_replaced: list[Target] = []


def on_host() -> bool:
    """True if REFSSM_GPU=host: calls take NumPy arrays and run on the processor."""
    place = os.environ.get("REFSSM_GPU", "")
    if place not in PLACES:
        raise ValueError(f"REFSSM_GPU: wanted nothing or 'host', got {place!r}")
    return place == "host"


@cache
def _made(place: str) -> Target:
    return import_module(PLACES[place]).TARGET


def target() -> Target:
    """The target of launches now."""
    return _replaced[-1] if _replaced else _made("host" if on_host() else "")


@contextmanager
def replaced(by: Target) -> Iterator[None]:
    """Send the launches of a block of code to another target."""
    _replaced.append(by)
    try:
        yield
    finally:
        _replaced.pop()
