"""The launches of a call, written down instead of made: what each kernel would read and write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from gpu.gate.compiled import Compiled, compiled
from gpu.gate.occupancy import SHARED_OF_BLOCK, Card

from refssm_gpu._launching.kernel import Grid, Instance, Kernel, inlined, replaced

POINTER = 8  # bytes
_BOUNDS = r"__launch_bounds__\s*\([^)]*\)\s*"


@dataclass(frozen=True)
class Launch:
    """One launch; `read` and `written` are the bytes of the arrays that it gets, each once."""

    kernel: Kernel
    instance: Instance
    grid: tuple[int, ...]
    shared: int  # dynamic
    read: int  # of arrays to which the kernel has pointers to const
    written: int  # of all others
    for_marked: bool = False  # computes marked rows only, which a usual call does not have

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return prod(self.grid)

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read + self.written


class Recorder:
    """Takes launches as a card does. Memory that a kernel would fill is left as it is."""

    array = np.ndarray

    def __init__(self, card: Card):
        self.card, self.launches = card, []
        self.multiprocessors = card.multiprocessors

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Check what the card would refuse or misread, and write the launch down."""
        made = instance_of(kernel, instance, self.card.architecture)
        _fits(kernel, made, arguments, shared)
        arrays: dict[bool, dict] = {True: {}, False: {}}
        for const, value in zip(constness(kernel), arguments, strict=True):
            if const is not None and value is not None:
                arrays[const][value.ctypes.data] = value.nbytes  # an array given twice counts once
        read, written = (sum(arrays[const].values()) for const in (True, False))
        again = _for_marked(kernel, arguments)
        self.launches.append(Launch(kernel, instance, grid, shared, read, written, again))


@contextmanager
def recorded(card: Card) -> Iterator[list[Launch]]:
    """The launches that a block of code would make on this card, with NumPy arrays."""
    recorder, before = Recorder(card), os.environ.get("REFSSM_GPU")
    os.environ["REFSSM_GPU"] = "host"
    try:
        with replaced(recorder):
            yield recorder.launches
    finally:
        del os.environ["REFSSM_GPU"]
        if before is not None:
            os.environ["REFSSM_GPU"] = before


def instance_of(kernel: Kernel, instance: Instance, architecture: str) -> Compiled:
    """What the compiler says of this instance."""
    program, name = compiled(kernel, architecture), kernel.expression(instance)
    for made in program.instances:
        if made.expression == name:
            return made
    raise ValueError(f"{name} does not compile for {architecture}: {'; '.join(program.complaints)}")


@cache
def constness(kernel: Kernel) -> tuple[bool | None, ...]:
    """Of each parameter: True for a pointer to const, False for another one, None for a value."""
    return tuple(_constness(p) for p in _parameters(kernel))


def names(kernel: Kernel) -> tuple[str, ...]:
    """The names of the parameters."""
    return tuple(re.findall(r"\w+", p)[-1] for p in _parameters(kernel))


@cache
def _parameters(kernel: Kernel) -> tuple[str, ...]:
    """The parameters as the source declares them: "const float* x"."""
    text = re.sub(r"//[^\n]*", "", inlined(kernel.source))
    start = re.search(rf"__global__\s+void\s+(?:{_BOUNDS})?{kernel.name}\s*\(", text)
    if start is None:
        raise ValueError(f"{kernel.source} has no `__global__ void {kernel.name}(…)`")
    depth, parameters = 1, [""]
    for letter in text[start.end() :]:
        depth += (letter in "(<[") - (letter in ")>]")
        if depth == 0:
            break
        if letter == "," and depth == 1:
            parameters.append("")
        else:
            parameters[-1] += letter
    return tuple(p.strip() for p in parameters if p.strip())


def _for_marked(kernel: Kernel, arguments: tuple[Any, ...]) -> bool:
    """Whether a launch gets an array of marks; ValueError if the kernel has no such parameter."""
    if kernel.marked is None:
        return False
    found = names(kernel)
    if kernel.marked.parameter not in found:
        wanted = f"`{kernel.marked.parameter}`, which its Kernel declares as the marks of rows"
        raise ValueError(f"{kernel.name} has no parameter {wanted}; it has {', '.join(found)}")
    return arguments[found.index(kernel.marked.parameter)] is not None


def _constness(parameter: str) -> bool | None:
    target, star, _ = parameter.rpartition("*")
    return bool(re.search(r"\bconst\b", target)) if star else None


def _fits(kernel: Kernel, made: Compiled, arguments: tuple[Any, ...], shared: int) -> None:
    """Raise ValueError for arguments of other sizes than the parameters, or too much memory."""
    came = tuple(_size(a, const) for a, const in zip(arguments, constness(kernel), strict=False))
    if len(arguments) != len(made.parameters) or came != made.parameters:
        raise ValueError(
            f"{made.expression} wants {len(made.parameters)} parameters of {made.parameters} bytes,"
            f" got {len(arguments)} of {came}"
        )
    most = SHARED_OF_BLOCK[made.architecture]
    if shared + made.shared > most:
        raise ValueError(
            f"{made.expression} wants {shared + made.shared} bytes of shared memory a block, "
            f"{made.architecture} has {most}"
        )


def _size(argument: Any, const: bool | None) -> int:
    return POINTER if argument is None or const is not None else argument.nbytes
