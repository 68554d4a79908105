"""Kernels as NVRTC compiles them, one program for all instances of a kernel, kept on disk."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from gpu.gate import nvrtc
from gpu.gate.elf import constants
from gpu.gate.flight import under_way
from gpu.gate.ptx import Text
from platformdirs import user_cache_path

from refssm_gpu._launching.kernel import Kernel, inlined

ARCHITECTURES = ("sm_80", "sm_90")
# -ftz as CuPy has it; ptxas says on -v what a kernel needs
OPTIONS = ("-std=c++17", "-ftz=true", "--ptxas-options=-v")
READERS = ("compiled", "elf", "flight", "nvrtc", "ptx")
UNUSED = 30 * 24 * 3600  # seconds after which a record that nobody read is removed
_TOLD = re.compile(
    r"Function properties for (?P<name>[\w$]+)\s+ptxas\s+\.\s+(?P<stack>\d+) bytes stack frame, "
    r"(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads\s+"
    r"ptxas info\s+: Used (?P<registers>\d+) registers(?:, used (?P<barriers>\d+) barriers)?"
    r"(?:, \d+ bytes cumulative stack size)?(?:, (?P<shared>\d+) bytes smem)?"
)


@dataclass(frozen=True)
class Compiled:
    """One instance for one architecture; sizes are in bytes."""

    expression: str
    architecture: str
    registers: int  # of a thread
    spill_stores: int
    spill_loads: int
    stack: int  # local memory of a thread, spilled registers included
    shared: int  # static
    barriers: int
    constants: int  # parameters and literals
    parameters: tuple[int, ...]  # the size of each
    block: int  # threads, from __launch_bounds__
    widest: int  # load from global memory in the PTX
    in_flight: int  # that a thread has asked for before it waits for the first of them
    double: tuple[str, ...]  # PTX instructions in double precision
    fast: tuple[str, ...]  # PTX approximations
    frame: int  # the part of `stack` that functions of the library need


@dataclass(frozen=True)
class Program:
    """All instances of a kernel for one architecture; none if the compiler refused the source."""

    complaints: tuple[str, ...]  # errors and warnings, each in one line
    instances: tuple[Compiled, ...]


def compiled(kernel: Kernel, architecture: str) -> Program:
    """The kernel's instances, from disk if this source was compiled here before."""
    expressions = [kernel.expression(instance) for instance in kernel.instances]
    return of_source(inlined(kernel.source), expressions, architecture)


def of_source(source: str, expressions: Sequence[str], architecture: str) -> Program:
    """The instances with these name expressions."""
    decides = (_readers(), nvrtc.version(), OPTIONS, architecture, *expressions, source)
    place = folder() / f"{hashlib.sha256(repr(decides).encode()).hexdigest()[:32]}.json"
    try:
        text = place.read_text(encoding="utf-8")
        os.utime(place)
        return _read(text)
    except (OSError, ValueError):  # not there, or a damaged disk
        program = _compile(source, expressions, architecture)
    with suppress(OSError):  # no room, no right to write
        _write(place, json.dumps(asdict(program)))
    return program


def folder() -> Path:
    """Where records are kept; `REFSSM_CACHE_DIR` replaces the user's cache folder."""
    given = os.environ.get("REFSSM_CACHE_DIR")
    return Path(given or user_cache_path("refssm", appauthor=False)).absolute() / "nvrtc"


@cache
def _readers() -> tuple[str, ...]:
    """The text of the files that read a compiler's output: what they found is in the records."""
    files = (Path(__file__).parent / f"{name}.py" for name in READERS)
    return tuple(path.read_text(encoding="utf-8") for path in files)


def _read(text: str) -> Program:
    held: dict[str, Any] = json.loads(text)
    made = []
    for fields in held["instances"]:
        record: dict[str, Any] = {k: tuple(v) if type(v) is list else v for k, v in fields.items()}
        made.append(Compiled(**record))
    return Program(tuple(held["complaints"]), tuple(made))


def _write(place: Path, text: str) -> None:
    """The whole file or nothing, whoever else writes it; unused ones are removed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for other in place.parent.iterdir():
        if time.time() - other.stat().st_mtime > UNUSED:
            other.unlink(missing_ok=True)
    with NamedTemporaryFile("w", dir=place.parent, delete=False, encoding="utf-8") as part:
        part.write(text)
    os.replace(part.name, place)


def _compile(source: str, expressions: Sequence[str], architecture: str) -> Program:
    made = nvrtc.compiled(source, expressions, (*OPTIONS, f"-arch={architecture}"))
    told = {match["name"]: match for match in _TOLD.finditer(made.log)}
    found = []
    for expression, name in made.names.items():
        text, match = Text(made.ptx, name), told[name]
        found.append(
            Compiled(
                expression=expression,
                architecture=architecture,
                registers=int(match["registers"]),
                spill_stores=int(match["stores"]),
                spill_loads=int(match["loads"]),
                stack=int(match["stack"]),
                shared=int(match["shared"] or 0),
                barriers=int(match["barriers"] or 0),
                constants=constants(made.cubin, name),
                parameters=text.parameters,
                block=text.block,
                widest=max(text.loads, default=0),
                in_flight=under_way(text.body),
                double=text.double,
                fast=text.fast,
                frame=text.frame,
            )
        )
    return Program(tuple(complaints(made.log, made.failed)), tuple(found))


def complaints(log: str, failed: bool = False) -> list[str]:
    """What the log says beside the sizes of kernels: every warning and error, with its line.

    NVRTC has no option that makes warnings errors, so whatever is not known to be harmless counts.
    """
    harmless = ("ptxas info", "ptxas         .", "Remark: The warnings can be suppressed")
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith(harmless)]
    found = []
    for line, following in pairwise([*lines, ""]):
        if re.search(r"\b(warning|error)\b.*:", line):
            shown = f": {following.strip()}" if following.startswith("  ") else ""
            found.append(line.strip() + shown)
    if not found and (lines or failed):
        found = [" ".join(line.strip() for line in lines) or "the compiler failed without a word"]
    return found
