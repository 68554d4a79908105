"""A launch as a file: what the stand-alone program of a sanitizer needs to repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import string_at
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from refssm_gpu._host.arguments import Parameter
from refssm_gpu._host.guarded import spans
from refssm_gpu._host.launch import TARGET, flushes, full_grid, parameters
from refssm_gpu._host.settings import Settings, current
from refssm_gpu._launching.kernel import Instance, Kernel
from refssm_gpu._launching.target import replaced

NO_ARRAY = 2**64 - 1
LARGEST = 2**28  # bytes of all arrays of a record


@dataclass(frozen=True)
class Recorded:
    """One launch: what was asked, and the contents of memory before it ran."""

    kernel: Kernel
    instance: Instance
    grid: tuple[int, ...]
    shared: int
    memory: tuple[bytes, ...]  # arrays; those that overlap are one piece
    arguments: tuple[bytes | tuple[int, int], ...]  # a value, or a piece and an offset in it
    settings: Settings

    def write(self, file: Path) -> None:
        """Write it for replay.cpp: 64-bit numbers, each piece of bytes after its size."""
        only = np.array(self.settings.only or (), np.uint32)
        parts: list[Any] = [
            *full_grid(self.grid), self.kernel.block, self.shared, self.settings.order,
            flushes(self.kernel, self.instance), only.size // 3, only.tobytes(), len(self.memory),
        ]  # fmt: skip
        for piece in self.memory:
            parts += [len(piece), piece]
        parts.append(len(self.arguments))
        for argument in self.arguments:
            value = isinstance(argument, bytes)
            parts += [0, len(argument), argument] if value else [1, *argument]
        with file.open("wb") as out:
            for part in parts:
                out.write(part if isinstance(part, bytes) else np.uint64(part).tobytes())


class Recorder:
    """Takes launches, keeps a record of each, and may run them as the host build does."""

    array = TARGET.array
    multiprocessors = TARGET.multiprocessors

    def __init__(self, *, run: bool):
        self.run = run
        self.records: list[Recorded] = []

    def launch(
        self,
        kernel: Kernel,
        instance: Instance,
        grid: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared: int,
    ) -> None:
        """Record one kernel with the memory that it sees."""
        pairs = list(zip(parameters(kernel, instance), arguments, strict=True))
        arrays = [a for parameter, a in pairs if parameter.pointer and a is not None]
        memory, places = _memory(kernel.name, arrays)
        described = tuple(_described(*pair, places) for pair in pairs)
        self.records.append(Recorded(kernel, instance, grid, shared, memory, described, current()))
        if self.run:
            TARGET.launch(kernel, instance, grid, arguments, shared)


@contextmanager
def recorded(*, run: bool = True) -> Iterator[list[Recorded]]:
    """Record all launches of a block of code; one that ends with an error is recorded, too.

    Without `run` the launches do nothing else: arrays stay as they are.
    """
    recorder = Recorder(run=run)
    with replaced(recorder):
        yield recorder.records


def _described(
    parameter: Parameter, argument: Any, places: dict[int, tuple[int, int]]
) -> bytes | tuple[int, int]:
    if not parameter.pointer:
        return np.asarray(argument).tobytes()
    return (NO_ARRAY, 0) if argument is None else places[id(argument)]


def _memory(name: str, arrays: list[np.ndarray]) -> tuple[tuple[bytes, ...], dict[int, Any]]:
    """The pieces of memory that these arrays cover, and the place of each array in them."""
    if (total := sum(a.nbytes for a in arrays)) > LARGEST:
        raise ValueError(f"{name}: {total} bytes of arrays; a record has at most {LARGEST}")
    found = spans(arrays)
    places: dict[int, tuple[int, int]] = {}
    for array in arrays:
        address = array.ctypes.data
        piece = max(i for i, (first, _) in enumerate(found) if first <= address)
        places[id(array)] = piece, address - found[piece][0]
    return tuple(string_at(first, end - first) for first, end in found), places
