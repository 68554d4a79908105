"""Launches of the host build: the kernel's arguments checked, its blocks run on NumPy arrays."""

import ctypes
import shutil
import subprocess
import threading
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_size_t, c_void_p
from ctypes import c_uint as uint
from ctypes import c_ulonglong as size
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from refssm_gpu._host import arguments as args
from refssm_gpu._host.build import launch_bound, library
from refssm_gpu._host.settings import Block, Count, current
from refssm_gpu._launching.kernel import GRID, Grid, Instance, Kernel

THREADS, SHARED = 1024, 227 * 1024  # of a block
NAMES_THE_LINE = "python -m refssm_gpu._host.sanitize FAILURE.npz names the line"
DOUBLE = {"float64", "complex128"}


class HostError(RuntimeError):
    """A kernel did what it must not do; the message says kernel, block, thread and line."""


class _Launch(Structure):
    _fields_ = (
        ("kernel", c_char_p), ("body", c_void_p), ("arguments", POINTER(c_void_p)),
        ("only", c_void_p), ("only_count", size), ("shared", size), ("grid", uint * 3),
        ("block", uint), ("order", uint), ("flush", c_int),
    )  # fmt: skip


class _Outcome(Structure):
    _fields_ = (
        ("blocks", size), ("threads", size), ("barriers", size), ("warp_calls", size),
        ("switches", size), ("shared", size), ("fault", c_void_p), ("message", c_char * 1000),
    )  # fmt: skip


class _Described(Structure):
    _fields_ = (("type", c_char_p), ("bytes", c_size_t), ("pointer", c_int), ("constant", c_int))


class _Found(ctypes.Structure):
    _fields_ = (
        ("file", c_char_p), ("base", c_void_p),
        ("name", c_char_p), ("place", c_void_p),
    )  # fmt: skip


class Host:
    """Runs kernels on NumPy arrays; a launch returns when its kernel has run."""

    array = np.ndarray
    multiprocessors = 8  # so few that tests at small sizes see several blocks a row

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Run one kernel, as the settings say."""
        name = kernel.expression(instance)
        grid = _checked(name, grid, kernel.block, shared)
        bound = launch_bound(kernel.source, kernel.name) or kernel.block
        if kernel.block > bound:
            raise ValueError(f"{name}: {kernel.block} threads; its __launch_bounds__ say {bound}")
        function = _loaded(library(kernel, instance, current().flags))
        pointers, kept = args.pointers(name, function.parameters, arguments)
        blocks = _blocks(name, grid, current().only)
        asked = _Launch(
            kernel=name.encode(), body=function.body, arguments=pointers,
            only=None if blocks is None else blocks.ctypes.data,
            only_count=0 if blocks is None else len(blocks), shared=shared, grid=(uint * 3)(*grid),
            block=kernel.block, order=current().order, flush=flushes(kernel, instance),
        )  # fmt: skip
        outcome = _Outcome()
        guarded = args.Guarded(function.parameters, arguments, kept)
        with _one_at_a_time:
            failed = function.launch(byref(asked), byref(outcome))
        outside = guarded.back()
        if failed:
            raise HostError(outcome.message.decode(errors="replace") + line_of(outcome.fault))
        if outside:
            raise HostError(f"{name}: {outside}; {NAMES_THE_LINE}")
        counted = (getattr(outcome, field.name) for field in fields(Count)[1:])
        current().counts.append(Count(name, *counted))


_one_at_a_time = threading.Lock()  # the engine has one state
TARGET = Host()


def parameters(kernel: Kernel, instance: Instance) -> tuple[args.Parameter, ...]:
    """What the kernel takes, as the compiler sees it."""
    return _loaded(library(kernel, instance, current().flags)).parameters


def flushes(kernel: Kernel, instance: Instance) -> bool:
    """Whether subnormal numbers become zero, as CuPy's -ftz=true has it for single precision.

    The processor's switch holds for double precision, too, where a card keeps them.
    """
    return not (kernel.double_inside or DOUBLE & set(map(str, instance)))


def full_grid(grid: Grid) -> Grid:
    """The grid with three axes."""
    return (*grid, 1, 1)[:3]


def _checked(name: str, grid: Grid, block: int, shared: int) -> Grid:
    """The grid with three axes, if a card would take it."""
    most = zip(full_grid(grid), GRID, strict=True)
    if len(grid) > 3 or any(not 0 < n <= largest for n, largest in most):
        raise ValueError(f"{name}: a grid of {grid} blocks; wanted three axes of at most {GRID}")
    if not 0 < block <= THREADS:
        raise ValueError(f"{name}: {block} threads a block; wanted 1 to {THREADS}")
    if not 0 <= shared <= SHARED:
        raise ValueError(f"{name}: {shared} bytes of shared memory; wanted at most {SHARED}")
    return full_grid(grid)


def _blocks(name: str, grid: Grid, only: tuple[Block, ...] | None) -> Any:
    """The blocks to run as an array, or None for all."""
    if only is None:
        return None
    chosen = np.array(only, np.int64).reshape(-1, 3)
    if not ((chosen >= 0) & (chosen < grid)).all():
        raise ValueError(f"{name}: only={only} has a block outside of the grid {grid}")
    return chosen.astype(np.uint32)


class _Function:
    """One instance, loaded."""

    def __init__(self, path: Path):
        loaded = ctypes.CDLL(str(path))
        self.body = ctypes.cast(loaded.kernel_body, c_void_p)
        self.launch = loaded.cuda_on_host_launch
        self.launch.argtypes = (POINTER(_Launch), POINTER(_Outcome))
        loaded.kernel_parameters.restype = POINTER(_Described)
        self.parameters = tuple(_described(loaded.kernel_parameters()))


def _described(described: Any) -> Any:
    """The kernel's parameters; the row after the last one has no size."""
    i = 0
    while described[i].bytes:
        d = described[i]
        text = None if d.type is None else d.type.decode()
        yield args.Parameter(text, d.bytes, bool(d.pointer), bool(d.constant))
        i += 1


@cache
def _loaded(path: Path) -> _Function:
    return _Function(path)


def line_of(instruction: int | None) -> str:
    """ " (scan.cuh:57)", or an empty text where it cannot be found."""
    tool = shutil.which("addr2line")
    found = _Found()
    if not (instruction and tool):
        return ""
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(instruction), ctypes.byref(found)):
        return ""
    offset = instruction - found.base
    told = subprocess.run(
        [tool, "-i", "-e", found.file.decode(), hex(offset)],
        capture_output=True, encoding="utf-8", errors="replace",
    ).stdout  # fmt: skip
    # functions of CUDA that are inlined stand before the line of the kernel
    for line in told.splitlines():
        path, _, number = line.partition(" ")[0].rpartition(":")
        if path.endswith(".cuh") and number.isdigit():
            return f" ({Path(path).name}:{number})"
    return ""
