"""Grade N, "right in norm": entries that cancel in differences of cumulative sums.

Such a program keeps the digits of the largest entries of a row of time, not those of entries that
are much smaller. Its bounds are those of the operator's cumulated form (`gauges/cumulated/`),
entry by entry; no entry borrows from another member of the batch, another head or channel.
"""

from math import floor, log2

import numpy as np

from refssm.conformance.judging.allowed import Bounds
from refssm.conformance.judging.verdict import BEYOND, Verdict, says_nothing
from refssm.conformance.standard import Standard


def right_in_norm(error, value, bounds: Bounds, judged, standard: Standard, dims, notes) -> Verdict:
    """The verdict on an output whose errors are all within N, but not all within A or B.

    `error` is |ŷ − y| of each entry, and `dims` names its axes.
    """
    assert bounds.n is not None
    if says_nothing(value, bounds.n, judged):
        return Verdict("-", notes=(*notes, BEYOND))
    size, error = (np.where(judged, a, 0.0) for a in (np.abs(value).astype(float), error))
    with np.errstate(all="ignore"):
        ratio = np.where(error > 0, standard.room * error / bounds.n, 0.0)
        place = np.unravel_index(
            np.argmax(np.where(error > 0, error / bounds.own, 0.0)), error.shape
        )
    row = _row(error.shape, place, dims)
    largest, smallest = _right_bits(np.ravel(error[row]), np.ravel(size[row]), -log2(standard.u))
    bits = f"{smallest} bit" + "s" * (smallest != 1)
    message = f"cancels: {largest} bits of the largest entry of its row, {bits} of the smallest"
    return Verdict("N", float(ratio.max()), smallest, message, notes, allowed=standard.room)


def _row(shape, place, dims) -> tuple:
    """The index of the row of time through `place`; of its last axis if there is no time."""
    if not shape:
        return ()
    axis = dims.index("l") - len(dims) if "l" in dims else -1
    return tuple(slice(None) if i == axis % len(shape) else int(p) for i, p in enumerate(place))


def _right_bits(error, size, most: float) -> tuple[int, int]:
    """How many bits of a row's largest entry are right, and the fewest of any of its entries."""
    pairs = ((error.max(), size.max()), *zip(error, size, strict=True))
    largest, *others = (floor(_bits(e, s, most)) for e, s in pairs)
    return largest, min(others)


def _bits(error, size, most: float) -> float:
    """Right bits of a number of this size."""
    if not error:
        return most
    # the quotient of a subnormal number and a large error would be 0, which has no logarithm
    return min(most, max(0.0, log2(size) - log2(error))) if size else 0.0
