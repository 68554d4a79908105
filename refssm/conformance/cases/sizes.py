"""Core dimensions of an operator: their order, their largest sizes, which are sides of a matrix."""

from collections.abc import Iterable
from math import isqrt

from refssm._declaration.operator import Operator
from refssm.conformance.number_types import number_type

MATRIX_SIZE = 65
PAIRS = 4  # a pair of steps costs less than an entry that a recurrence carries from step to step


def core_dims(op: Operator) -> list[str]:
    """Names of the core dimensions; those of outputs come first, so the length is drawn first."""
    named = dict.fromkeys(d for ds in (*op.output_dims, *op.input_dims) for d in ds)
    return [d for d in named if not d[0].isdigit()]


def powers_of(op: Operator) -> dict[str, int]:
    """How often each core dimension occurs in the shape of one array, at most; or in its work."""
    powers = {d: max(x.count(d) for x in (*op.input_dims, *op.output_dims)) for d in core_dims(op)}
    powers |= {"l": 2} if "quadratic" in op.traits else {}
    return powers | ({"n": 2} if "r" in powers else {})  # a low-rank part represents an n×n matrix


def of_matrices(op: Operator, dim: str) -> bool:
    """True if a dimension is drawn only up to `MATRIX_SIZE`, because the work is cubic in it."""
    powers = powers_of(op)
    if op.contract.follows_each_operation:  # a matrix that is only written costs its entries
        given = (dim == "n" and "r" in powers) or any(x.count(dim) > 1 for x in op.input_dims)
        return given or op.constructor or op.contract.stays_short
    return max(powers.values()) > 1 or op.contract.stays_short


def entries_of(op: Operator, dtype: str, *, of_gradient: bool = False) -> int:
    """The limit on the product of all sizes of a case; without inputs no oracle slows it down."""
    contract, more = op.contract, PAIRS if "quadratic" in op.traits else 1
    if number_type(dtype).double and op.inputs:
        return more * contract.double_case_entries
    return more * (contract.gradient_case_entries if of_gradient else contract.case_entries)


def largest(op: Operator, dim: str, sizes: Iterable[int], entries: int) -> int:
    """The largest of `sizes` that is drawn for a dimension, if all other sizes are small."""
    room = entries if powers_of(op)[dim] == 1 else isqrt(entries)
    if of_matrices(op, dim):
        room = min(room, MATRIX_SIZE)
    return max(s for s in sizes if s <= room)
