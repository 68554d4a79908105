"""The sizes that models publish: every operator is drawn there, or says here why it is not.

Mamba-2 has 128 states and heads of 64 channels, Gated DeltaNet keys of 128 or 256 channels, Kimi
Linear heads of 128 by 128, S5 up to 256 states. Lengths go beyond 300, where an index of one byte
has begun again.
"""

from collections.abc import Iterable, Mapping

from refssm._declaration.contract import EXPM, GRAMIANS, SINGULAR, SOLVE
from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import COUNT

BEYOND = 300  # each operator with a length is drawn with a longer one
STATES = (128, 256)
BESIDE: Mapping[str, tuple[int, int]] = {  # what is drawn beside 128 and beside 256 states
    "p": (64, 128),  # channels of a head
    "m": (3, 64),  # inputs
    "t": (4, 3),  # taps
    "h": (9, 5),  # channels of a layer
    "e": (10, 6),
    "d": (4, 3),
    "r": (1, 1),
}
OUTPUTS = (64, 2)  # of a system with several inputs: 64 of both would be too many
OF_PRODUCTS = (8, 1)  # where a head stores all products of its channels: H3 has 8 or 1
SEQUENCES = (3, 2)  # packed ones, chunks, or places
OTHERS = (3, 2)  # sizes that no model names
FEATURES = (1024,)  # of a norm over all channels

CUBIC = "dense systems of n equations take n³ operations, and so do their bounds"
BY_ORACLE = "in double precision the oracle of a low-rank part solves dense systems"
ONE_CHUNK = "the length is that of one chunk; models publish 16 to 256 steps"


def why_not(op: Operator, dim: str, *, double: bool = False) -> str:
    """Why a dimension does not reach the sizes that models publish, or ""."""
    if dim == "n" and _solves(op):
        return CUBIC
    if dim == "n" and double and _low_rank(op):
        return BY_ORACLE
    if dim == "l" and op.name.startswith("chunk_"):
        return ONE_CHUNK
    return ""


def _solves(op: Operator) -> bool:
    """True if it solves dense systems, or takes a function of a dense matrix."""
    by_contract = op.contract in (EXPM, GRAMIANS, SINGULAR, SOLVE)
    one_layer = op.family == "layers" and _low_rank(op)
    return by_contract or one_layer or op.name in ("hippo_project", "transfer", "transfer_discrete")


def _low_rank(op: Operator) -> bool:
    return any("r" in dims and "n" in dims for dims in op.input_dims)


def wide(
    op: Operator, dims: Iterable[str], *, double: bool = False
) -> tuple[Mapping[str, int], ...]:
    """The published core sizes but the length, in double precision or not; () without states."""
    dims = [d for d in dims if d != "l"]
    if "n" not in dims or why_not(op, "n", double=double):
        return ()
    full = _low_rank(op) or any(ds.count("n") > 1 for ds in op.input_dims)
    orders = FEATURES if "group" in op.parameters else STATES[:1] if full else STATES
    beside = {**BESIDE}
    if {"m", "p"} <= {*dims} and not _counted(op):
        beside["p"] = OUTPUTS
    if any(ds.count("p") > 1 for ds in op.output_dims):
        beside["p"] = OF_PRODUCTS
    beside |= {COUNT: SEQUENCES} if _counted(op) else {}
    return tuple(
        {d: n if d == "n" else beside.get(d, OTHERS)[i] for d in dims} for i, n in enumerate(orders)
    )


def _counted(op: Operator) -> bool:
    """True if m counts sequences, places or chunks."""
    return bool(op.offsets) or op.leading == COUNT
