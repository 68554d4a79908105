"""The case of a conduct check with other values, with more steps, or with a large output."""

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt, prod

import numpy as np

from refssm._declaration.signature import length_of
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.sizes import MATRIX_SIZE, core_dims, of_matrices, powers_of

LONGER = (257, 256)  # several blocks or threads take part; the second for whole blocks only
SIDE = 16  # of the matrices of a longer input: the work is cubic in it
LARGE = 2**17  # bytes of an output: allocators keep small ones, and buffers are for large ones
LONGEST, LONGEST_OF_PAIRS = 4096, 512  # where all pairs of steps are an array: 512² entries


def other_values(candidate: Candidate, case: Case) -> list[np.ndarray] | None:
    """Arguments of the same shapes with other values; None if there are none."""
    if candidate.offer.immutable or candidate.offer.files:
        return None
    try:
        arrays, statics = candidate.given(case)
        other, told = candidate.given(replace(case, seed=case.seed + 1))
    except Declined:
        return None
    alike = told == statics and [a.shape for a in other] == [a.shape for a in arrays]
    return other if alike and [a.dtype for a in other] == [a.dtype for a in arrays] else None


def longer(candidate: Candidate, case: Case) -> Iterator[tuple[Case, str]]:
    """The case with more steps, or with a larger matrix, and its size in words."""
    op = candidate.op
    first = op.leading or core_dims(op)[0]
    sizes = (MATRIX_SIZE, MATRIX_SIZE - 1) if of_matrices(op, first) else LONGER
    for size in sizes:
        yield from _with_first(candidate, case, size)


def large(candidate: Candidate, case: Case) -> Iterator[tuple[Case, str]]:
    """The case with so many steps, or so large a matrix, that an output has 128 kB if it can."""
    op = candidate.op
    first = op.leading or core_dims(op)[0]
    if first not in op.output_dims[0] or (of_matrices(op, first) and first != "l"):
        yield from _with_first(candidate, case, MATRIX_SIZE)
        return
    core = {**case.sizes, **_sides(candidate, case), first: 1}
    rows = prod(length_of(d, core) for d in op.output_dims[0]) * prod(case.batch.values())
    number = np.finfo(case.dtype).bits // 8  # an output may be real where the case is complex
    steps = -(-LARGE // (rows * number))
    if op.output_dims[0].count(first) > 1:  # all pairs of steps
        steps = isqrt(steps - 1) + 1
    longest = LONGEST if powers_of(op)[first] == 1 else LONGEST_OF_PAIRS
    yield from _with_first(candidate, case, min(steps, longest))


def _sides(candidate: Candidate, case: Case) -> dict[str, int]:
    """Smaller matrices for a longer input."""
    op = candidate.op
    free = [d for d in case.sizes if d not in op.parameters and d not in candidate.between]
    return {d: min(case.sizes[d], SIDE) for d in free if of_matrices(op, d)}


def _with_first(candidate: Candidate, case: Case, size: int) -> Iterator[tuple[Case, str]]:
    """The case with its first size enlarged to `size`, as far as `--where` allows it."""
    op = candidate.op
    first = op.leading or core_dims(op)[0]
    _, high = candidate.between.get(first, (1, size))
    size = min(size, int(high))
    if size > case.sizes[first] and first not in op.parameters:
        sizes = {**case.sizes, **_sides(candidate, case), first: size}
        yield replace(case, sizes=sizes), f"at {first}={size} "
