"""Compiles every mirror for this machine, on all its cores: `python -m refssm.jit`.

Not in `__main__`: other processes could not import from there what they are to do.
"""

import pkgutil
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from typing import NamedTuple

from joblib import cpu_count
from rich.console import Console
from rich.progress import track

import refssm.jit
from refssm.jit._compiling.cache import of_these_sources
from refssm.jit._compiling.gufunc import GufuncKernel


class Part(NamedTuple):
    """One kernel in one combination of types, as another process finds it."""

    module: str
    name: str
    place: int


def kernels() -> Iterator[tuple[str, str, GufuncKernel]]:
    """Every kernel with its module and its name there."""
    for family in pkgutil.walk_packages(refssm.jit.__path__, "refssm.jit."):
        if not family.name.rpartition(".")[-1].startswith("_"):
            for name, value in vars(import_module(family.name)).items():
                kernel = getattr(value, "kernel", None)
                if isinstance(kernel, GufuncKernel) and kernel.function.__module__ == family.name:
                    yield family.name, name, kernel


def parts() -> list[Part]:
    """All that is to be compiled; long functions take longest and come first, so that the cores
    end together."""
    sized = [
        (len(kernel.function.__code__.co_code), Part(module, name, place))
        for module, name, kernel in kernels()
        for place in range(len(kernel.types))
    ]
    return [part for _, part in sorted(sized, reverse=True)]


def compile_part(part: Part) -> None:
    """Load a part in this process: what is not on disk yet is compiled and kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = getattr(import_module(part.module), part.name).kernel
        kernel.compiled([*kernel.types][part.place])


def main() -> None:
    """Compile all kernels, with progress on a terminal, and say where they are kept."""
    begun, todo, console = time.perf_counter(), parts(), Console(stderr=True)
    head = f"compiling {len(todo)} kernels of mirrors on {cpu_count()} cores"
    sys.stderr.write(f"{head}: minutes the first time, seconds later\n")
    # not Console.is_terminal: with FORCE_COLOR, rich treats a pipe as a terminal
    shown = sys.stderr.isatty()
    # not joblib's processes, which are replaced when their memory grows, as compilers' does
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as pool:
        done = as_completed([pool.submit(compile_part, part) for part in todo])
        for part in track(done, "compiling mirrors", len(todo), console=console, disable=not shown):
            part.result()
    took = time.perf_counter() - begun
    sys.stdout.write(f"{len(todo)} kernels of mirrors in {took:.0f} s, in {of_these_sources()}\n")
