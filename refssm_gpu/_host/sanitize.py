"""The compilers' sanitizers on a recorded launch: a program of its own repeats it under one.

AddressSanitizer finds accesses outside of arrays, ThreadSanitizer two threads at one place without
a barrier between them, UndefinedBehaviorSanitizer misaligned loads and integers that overflow.

    python -m refssm_gpu._host.sanitize .refssm/ssd_chunked-1a2b3c4d.npz

repeats a failure that `refssm verify` saved, each launch first under AddressSanitizer, and prints
kernel and line of the first access outside of an array; then the exit code is 1.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from ctypes import string_at
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from refssm_gpu._host.arguments import Parameter, spans
from refssm_gpu._host.build import FLAGS, RUNTIME, decisive, instance_flags, kept, run_compiler
from refssm_gpu._host.launch import TARGET, HostError, flushes, full_grid, parameters
from refssm_gpu._host.settings import HostSettings, current
from refssm_gpu._launching.kernel import KERNELS, Grid, Instance, Kernel, replaced

UNDEFINED = "alignment,signed-integer-overflow,shift,bounds,integer-divide-by-zero,null"
SANITIZERS = {
    "AddressSanitizer": ("-fsanitize=address",),
    "ThreadSanitizer": ("-fsanitize=thread",),
    "UndefinedBehaviorSanitizer": (f"-fsanitize={UNDEFINED}", "-fno-sanitize-recover=all"),
}
# The engine tells ThreadSanitizer itself what orders memory: its own accesses are not watched.
OF_ENGINE = {
    "AddressSanitizer": ("-fsanitize=address", "-DCUDA_ON_HOST_ASAN"),
    "ThreadSanitizer": ("-DCUDA_ON_HOST_TSAN",),
    "UndefinedBehaviorSanitizer": (),
}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=66:color=never",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66:color=never:report_signal_unsafe=0",
    "UBSAN_OPTIONS": "print_stacktrace=0:color=never",
}
USAGE = 4  # the exit code of the command's usage errors
SECONDS = 300  # after which a run is an error
KIND = {
    "AddressSanitizer": re.compile(r"AddressSanitizer: ([\w-]+)"),
    "ThreadSanitizer": re.compile(r"ThreadSanitizer: ([\w -]+?) (?:\(pid|on )"),
    "UndefinedBehaviorSanitizer": re.compile(r"runtime error: (.*)"),
}
NO_ARRAY = 2**64 - 1
LARGEST = 2**28  # bytes of all arrays of a record
LINE = re.compile(r"([\w.-]+\.cuh:\d+)")


class SanitizerError(RuntimeError):
    """A program of a sanitizer ended in another way than with a report or well."""


def reports(
    call: Callable[[], object], sanitizers: Iterable[str] = tuple(SANITIZERS), *, run: bool = True
) -> list[str]:
    """What the sanitizers say about all launches of a call; an empty list if nothing.

    Without `run` the launches are only recorded: for kernels that may write where they must not.
    If the engine stops a launch, its error is raised where no sanitizer has a word for it.
    """
    stopped = None
    with recorded(run=run) as launches:
        try:
            call()
        except HostError as error:
            stopped = error
    found = (report(launch, sanitizer) for launch in launches for sanitizer in sanitizers)
    sentences = [sentence for sentence in found if sentence]
    if stopped and not sentences:
        raise stopped
    return sentences


def report(launch: RecordedLaunch, sanitizer: str) -> str | None:
    """What one sanitizer says about one launch, in a sentence; None if nothing."""
    program = _program(launch, sanitizer)
    name = launch.kernel.expression(launch.instance)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "record"
        launch.write(file)
        try:
            done = subprocess.run(
                [program, file, name], capture_output=True, encoding="utf-8", errors="replace",
                env=os.environ | OPTIONS, stdin=subprocess.DEVNULL, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise SanitizerError(f"{sanitizer}: {name} ran over {SECONDS} s") from error
    if found := KIND[sanitizer].search(done.stderr):
        line = LINE.search(done.stderr, 0 if sanitizer.startswith("U") else found.end())
        return f"{sanitizer}: {found[1]} in {name}" + (f" at {line[1]}" if line else "")
    if done.returncode or done.stderr:
        told = done.stderr.strip()[-1000:] or "no words"
        raise SanitizerError(f"{sanitizer}: {name} ended with {done.returncode}: {told}")
    return None


def _program(launch: RecordedLaunch, sanitizer: str) -> Path:
    """The program that repeats launches of this instance, compiled at its first use."""
    expression = launch.kernel.expression(launch.instance)
    source = KERNELS / launch.kernel.source
    flags = (*launch.settings.flags, *SANITIZERS[sanitizer], "-fno-omit-frame-pointer")
    engine = _engine(sanitizer)

    def make(folder: Path) -> None:
        compile_ = instance_flags(folder, source, expression, flags)
        run_compiler([*compile_, *map(str, engine), "-o", "replay"], folder, expression)

    return kept([*decisive(source, flags), expression, engine[0].parent.name], make) / "replay"


def _engine(sanitizer: str) -> list[Path]:
    """The object files that all programs of a sanitizer share."""
    sources = [RUNTIME / name for name in ("runtime.cpp", "replay.cpp")]
    flags = ["-O1", *OF_ENGINE[sanitizer], "-fno-omit-frame-pointer"]

    def make(folder: Path) -> None:
        run_compiler([*FLAGS, *flags, "-c", *map(str, sources)], folder, "the engine")

    folder = kept([text for source in sources for text in decisive(source, flags)], make)
    return [folder / source.with_suffix(".o").name for source in sources]


@dataclass(frozen=True)
class RecordedLaunch:
    """One launch: what was asked, and the contents of memory before it ran."""

    kernel: Kernel
    instance: Instance
    grid: Grid
    shared: int
    memory: tuple[bytes, ...]  # arrays; those that overlap are one piece
    arguments: tuple[bytes | tuple[int, int], ...]  # a value, or a piece and an offset in it
    settings: HostSettings

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
        self.records: list[RecordedLaunch] = []

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Record one kernel with the memory that it sees."""
        pairs = list(zip(parameters(kernel, instance), arguments, strict=True))
        arrays = [a for parameter, a in pairs if parameter.pointer and a is not None]
        memory, places = _memory(kernel.name, arrays)
        described = tuple(_described(*pair, places) for pair in pairs)
        self.records.append(
            RecordedLaunch(kernel, instance, grid, shared, memory, described, current())
        )
        if self.run:
            TARGET.launch(kernel, instance, grid, arguments, shared)


@contextmanager
def recorded(*, run: bool = True) -> Iterator[list[RecordedLaunch]]:
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


class _Watching(Recorder):
    """Runs each launch after AddressSanitizer had no word for it; nothing after the first word."""

    def __init__(self):
        super().__init__(run=False)
        self.said = ""

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Repeat one kernel under the sanitizer, then run it as the host build does."""
        if not self.said:
            super().launch(kernel, instance, grid, arguments, shared)
            self.said = report(self.records.pop(), "AddressSanitizer") or ""
        if not self.said:
            TARGET.launch(kernel, instance, grid, arguments, shared)


def main(arguments: list[str]) -> int:
    """Replay a saved failure; prints what AddressSanitizer says."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m refssm_gpu._host.sanitize FAILURE.npz")  # noqa: T201
        return USAGE
    os.environ["REFSSM_GPU"] = "host"  # before the mirrors are imported
    watching, told = _Watching(), StringIO()
    with replaced(watching), redirect_stdout(told):
        code = _command("replay", arguments[0], "--in-process")
    if code == USAGE:  # said on the error stream
        return USAGE
    said = watching.said or f"AddressSanitizer: nothing\n{told.getvalue()}".strip()
    print(said)  # noqa: T201
    return int(bool(watching.said))


def _command(*arguments: str) -> int:
    """Run the command `refssm` in this process, where launches are watched; its exit code.

    It is run as a program, because the command stands above the mirrors.
    """
    before = sys.argv
    sys.argv = ["refssm", *arguments]
    try:
        runpy.run_module("refssm", run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
