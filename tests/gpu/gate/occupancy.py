"""Cards as their makers describe them, and how many blocks of a kernel one multiprocessor holds.

Sources, all public. NVIDIA's data sheets: A100 (80 GB SXM: 2039 GB/s, 19.5 TFLOPS), H100 (SXM:
3.35 TB/s, 67 TFLOPS), H200 (SXM: 4.8 TB/s, 67 TFLOPS). Multiprocessors: the architecture
whitepapers of A100 (108) and H100 (132; H200 has the same chip). Limits of a multiprocessor and
of a block: the table "Technical Specifications per Compute Capability" of the CUDA C++
Programming Guide (8.0 and 9.0). Nothing here was measured by us.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
LARGEST_BLOCK = 1024  # threads
REGISTERS = 65536  # of a multiprocessor, in words of 32 bits
REGISTERS_UNIT = 256  # a warp gets registers in these portions
PARTITIONS = 4  # of a multiprocessor; each has a quarter of the registers and of the warps
WARPS = 64  # of a multiprocessor
BLOCKS = 32
SHARED_RESERVED = 1024  # bytes of each block for the system
SHARED_UNIT = 128
SHARED_OF_BLOCK = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # the most that a block can get


@dataclass(frozen=True)
class Card:
    """One card; rates are peaks."""

    name: str
    architecture: str
    multiprocessors: int
    shared: int  # bytes for each multiprocessor
    bandwidth: float  # bytes a second
    flops: float  # single precision, a second, without tensor cores


CARDS = (
    Card("A100", "sm_80", 108, 164 * 1024, 2039e9, 19.5e12),
    Card("H100", "sm_90", 132, 228 * 1024, 3350e9, 67e12),
    Card("H200", "sm_90", 132, 228 * 1024, 4800e9, 67e12),
)


@dataclass(frozen=True)
class Occupancy:
    """Blocks of a kernel that one multiprocessor holds at a time, and what allows no more."""

    blocks: int
    warps: int  # of these blocks
    limit: str  # "registers", "shared memory", "warps", "blocks"

    @property
    def share(self) -> float:
        """Of the warps that a multiprocessor can hold."""
        return self.warps / WARPS


def occupancy(card: Card, registers: int, block: int, shared: int) -> Occupancy:
    """For a kernel with so many registers a thread, threads a block, and bytes of shared memory."""
    warps = _rounded_up(block, WARP) // WARP
    of_a_warp = _rounded_up(max(registers, 1) * WARP, REGISTERS_UNIT)
    fitting = REGISTERS // PARTITIONS // of_a_warp * PARTITIONS  # no warp spans two partitions
    of_a_block = _rounded_up(shared + SHARED_RESERVED, SHARED_UNIT)
    limits = {
        "warps": WARPS // warps,
        "blocks": BLOCKS,
        "registers": fitting // warps,
        "shared memory": card.shared // of_a_block,
    }
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limit], limits[limit] * warps, limit)


def _rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
