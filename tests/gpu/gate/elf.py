"""A cubin is an ELF file: the sizes of its sections, which its log does not say."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def section_sizes(cubin: bytes) -> dict[str, int]:
    """Bytes of each section, by name: `.nv.constant0.<kernel>` has the kernel's parameters."""
    header = _HEADER.unpack_from(cubin)
    assert header[0][:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
    start, width, count, of_names = header[6], header[11], header[12], header[13]
    rows = [_SECTION.unpack_from(cubin, start + i * width) for i in range(count)]
    names = cubin[rows[of_names][4] :]
    return {names[row[0] : names.index(b"\0", row[0])].decode(): row[5] for row in rows}


def constants(cubin: bytes, kernel: str) -> int:
    """Bytes of constant memory that only this kernel has: its parameters and its literals."""
    sizes = section_sizes(cubin).items()
    return sum(n for s, n in sizes if s.startswith(".nv.constant") and s.endswith(f".{kernel}"))
