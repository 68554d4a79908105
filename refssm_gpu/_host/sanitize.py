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
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from refssm_gpu._host.build import FLAGS, KERNELS, RUNTIME, decisive, instance_flags, run_compiler
from refssm_gpu._host.cache import kept
from refssm_gpu._host.launch import TARGET, HostError
from refssm_gpu._host.record import Recorded, Recorder, recorded
from refssm_gpu._launching.kernel import Instance, Kernel
from refssm_gpu._launching.target import replaced

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


def report(launch: Recorded, sanitizer: str) -> str | None:
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


def _program(launch: Recorded, sanitizer: str) -> Path:
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


class _Watching(Recorder):
    """Runs each launch after AddressSanitizer had no word for it; nothing after the first word."""

    def __init__(self):
        super().__init__(run=False)
        self.said = ""

    def launch(
        self,
        kernel: Kernel,
        instance: Instance,
        grid: tuple[int, ...],
        arguments: tuple[Any, ...],
        shared: int,
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
