"""The line of a kernel that an instruction belongs to."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path


class _Found(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p), ("place", ctypes.c_void_p),
    )  # fmt: skip


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
