"""Bugs of kernels, each reported by the checker that the table names; right kernels by none."""

import mmap
from dataclasses import dataclass

import numpy as np
import pytest
from gpu.hosted import kernel

from refssm_gpu._host.launch import HostError
from refssm_gpu._host.sanitize import SANITIZERS, reports
from refssm_gpu._host.settings import settings

ASAN, TSAN, UBSAN = SANITIZERS
ENGINE, VALUES = "the engine", "wrong values"
ORDERS = (0, 1, 5)
ROWS, L = 3, 300  # the last chunk of a row is ragged
RACE, BEYOND = "data race", "heap-buffer-overflow"


@dataclass(frozen=True)
class Planted:
    number: int
    what: str
    kernel: str
    checker: str
    said: str = ""
    block: int | None = None

    def __str__(self):
        return self.what


TABLE = (
    Planted(1, "an offset of 32 bits", "far_scan", VALUES),
    Planted(2, "the carry of another row", "chunked_scan", VALUES),
    Planted(3, "a negative row", "chunked_scan", ASAN, BEYOND),
    Planted(4, "no guard of the tail, reading", "chunked_scan", ASAN, BEYOND),
    Planted(5, "a mask without a lane that calls", "chunked_scan", ENGINE, "lacks its own lane 31"),
    Planted(6, "a shuffle from a lane that takes no part", "chunked_scan", VALUES),
    Planted(7, "unequal masks", "chunked_scan", ENGINE, "with the mask 0x"),
    Planted(8, "a barrier under divergence", "chunked_scan", ENGINE, "waits at"),
    Planted(9, "a missing barrier", "chunked_scan", TSAN, RACE),
    Planted(9, "a missing barrier, seen by its values", "chunked_scan", VALUES),
    Planted(10, "no guard of the tail, writing", "chunked_scan", ASAN, BEYOND),
    Planted(11, "all blocks write the same row", "chunked_scan", TSAN, RACE),
    Planted(12, "shared memory used again without a barrier", "chunked_scan", TSAN, RACE),
    Planted(12, "the same, seen by its values", "chunked_scan", VALUES),
    Planted(13, "a shared array too short", "tiled_sum", ASAN, "use-after-poison"),
    Planted(13, "the same, seen in the margin", "tiled_sum", ENGINE, "writes byte 508 of a shared"),
    Planted(14, "threads that leave before a barrier", "tiled_sum", ENGINE, "__syncthreads"),
    Planted(15, "shared memory without a value", "tiled_sum", VALUES),
    Planted(16, "a negative shared index", "tiled_sum", ASAN, "use-after-poison"),
    Planted(17, "no barrier between the steps of a tree", "tiled_sum", TSAN, RACE),
    Planted(18, "a race within a warp", "tiled_sum", TSAN, RACE),
    Planted(19, "two blocks write to one place", "tiled_sum", TSAN, RACE),
    Planted(20, "a lost update", "tiled_sum", TSAN, RACE),
    Planted(21, "a shift by more than the width", "tiled_sum", UBSAN, "shift exponent"),
    Planted(22, "no guard of the last tile", "transposed", ASAN, BEYOND),
    Planted(23, "a misaligned load of 16 bytes", "transposed", UBSAN, "misaligned address"),
    Planted(24, "a wrong pitch of a shared tile", "transposed", VALUES),
    Planted(25, "a tile read before it is written", "transposed", TSAN, RACE),
    Planted(26, "an integer that overflows", "transposed", UBSAN, "signed integer overflow"),
    Planted(0, "too few threads", "chunked_scan", VALUES, block=96),
)


def chunked_scan(block=None):
    """The call, and what it must give: whole numbers, so that every order of sums is exact."""
    b = np.random.default_rng(4).integers(-9, 10, (ROWS, L)).astype(np.float32)
    x = np.zeros_like(b)
    run = kernel("chunked_scan", "float", file="table.cuh", block=block or 128)
    return lambda: run(ROWS, b, x, np.int64(L)), lambda: np.array_equal(x, b.cumsum(1))


def far_scan(block=None):
    """One row that begins 2³³ numbers behind the first one, in addresses without memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # no reserve of memory
    l, row, first = np.int64(2**25), 256, 2**33
    x = np.frombuffer(mmap.mmap(-1, 4 * (first + 2**25), flags=flags), np.float32)
    b = np.frombuffer(mmap.mmap(-1, 4 * (first + 2**25), flags=flags), np.float32)
    b[first : first + 200] = 1
    run = kernel("chunked_scan_head", "float", file="table.cuh", block=block or 128)

    def call():
        with settings(only=((row, 0, 0),)):
            run(row + 1, b, x, l, np.int64(200))

    return call, lambda: np.array_equal(x[first : first + 200], np.arange(1, 201))


def tiled_sum(block=None):
    values = np.random.default_rng(5).integers(-9, 10, L).astype(np.float32)
    out, blocks = np.zeros(3, np.float32), np.zeros(1, np.int32)
    run = kernel("tiled_sum", "float", file="table.cuh", block=block or 128)
    wanted = [values[k : k + 128].sum() for k in range(0, L, 128)]
    right = lambda: out.tolist() == wanted and blocks[0] == 3  # noqa: E731
    return lambda: run(3, values, out, blocks, np.int64(L)), right


def transposed(block=None):
    x = np.arange(40 * 52, dtype=np.float32).reshape(40, 52)
    out = np.zeros((52, 40), np.float32)
    run = kernel("transposed", "float", file="table.cuh", block=block or 64)
    sizes = np.int64(40), np.int64(52)
    return lambda: run((4, 3), x, out, *sizes), lambda: np.array_equal(out, x.T)


CASES = {case.__name__: case for case in (chunked_scan, far_scan, tiled_sum, transposed)}


def outcome(case, checker, number, block=None):
    """What this checker says of the case; an empty list if nothing."""
    found = []
    with settings(flags=(f"-DPLANTED={number}",)):
        if checker in SANITIZERS:
            return reports(case(block)[0], [checker], run=False)
        for order in ORDERS:
            call, right = case(block)
            try:
                with settings(order=order):
                    call()
                found += [] if right() or checker != VALUES else [VALUES]
            except HostError as error:
                found += [str(error)] * (checker == ENGINE)
    return found


@pytest.mark.parametrize("bug", TABLE, ids=str)
def test_a_planted_bug_is_reported_by_its_checker(bug):
    found = outcome(CASES[bug.kernel], bug.checker, bug.number, bug.block)
    assert found
    assert any(bug.said in sentence for sentence in found), found


# a record holds no virtual memory
RIGHT = [(name, c) for name in CASES for c in (ENGINE, VALUES, *SANITIZERS)
         if name != "far_scan" or c not in SANITIZERS]  # fmt: skip


@pytest.mark.parametrize(("name", "checker"), RIGHT)
def test_the_right_kernels_are_reported_by_nobody(name, checker):
    assert outcome(CASES[name], checker, 0) == []


def test_the_table_has_every_checker_and_at_least_fifteen_bugs():
    assert len({bug.number for bug in TABLE}) >= 15
    assert {bug.checker for bug in TABLE} == {ENGINE, VALUES, *SANITIZERS}
