"""Planted bugs in the heads and groups of state-space duality.

Axes are (b, g, h, l, …) and B and C are (b, g, 1, l, n): heads of a group are neighbours.
"""

import numpy as np

from refssm.conformance.honest.ssd.forms import CHUNKED, RECURRENT, SEQUENCES
from refssm.conformance.planted.ssd.base import changing, planting, right
from refssm.ssd import SSD_CHUNKED, SSD_QUADRATIC, SSD_RECURRENT

DEVIATIONS, planted = planting()
BY_LAW = (*RECURRENT, SSD_QUADRATIC, CHUNKED[1])  # where the draws of seed 0 have groups


def tiled(B, heads):
    """B by heads (b, g, h, …), where head k of all belongs to group k mod G, not k // H."""
    place = next((k for k in range(B.ndim) if k == heads.ndim - 3), None)
    if heads.ndim < 5 or place is None or B.ndim != heads.ndim:
        return B
    g, h = heads.shape[-4], heads.shape[-3]
    which = np.arange(g * h).reshape(g, h) % B.shape[-4]
    return np.take(B[..., 0, :, :], which, axis=-3)


def _with(change, names=("B", "C")):
    """The right program with B and C as `change(B, x)` has them."""

    def whole(x, log_a, B, C, S0, resets, chunk):
        B = change(B, x) if "B" in names else B
        C = change(C, x) if "C" in names else C
        return right(x, log_a, B, C, S0, resets)

    return whole


def _of_group(pick):
    """The groups of B in another order, where there are any."""
    return lambda B, x: B[:, pick(B.shape[1])] if B.ndim == 5 else B


def _of_first_group(g):
    return np.zeros(g, int)


def _turned(g):
    return np.arange(g)[::-1]


TILED = "head k of all heads read the group k mod G, not k // H"
planted("groups_tiled", TILED, SEQUENCES)(_with(tiled))
planted("groups_tiled_by_law", TILED, BY_LAW, "group")(_with(tiled))
planted("groups_tiled_in_B", "B tiled over the heads, C repeated", SSD_RECURRENT)(
    _with(tiled, ("B",))
)
planted("groups_tiled_in_C", "C tiled over the heads, B repeated", SSD_RECURRENT)(
    _with(tiled, ("C",))
)
FIRST = "B and C of the first group for all"
planted("first_group", FIRST, (SSD_RECURRENT, SSD_QUADRATIC, SSD_CHUNKED))(
    _with(_of_group(_of_first_group))
)
planted("first_group_by_law", FIRST, (SSD_RECURRENT, SSD_CHUNKED), "group")(
    _with(_of_group(_of_first_group))
)
planted("first_group_of_C", "C of the first group for all", SSD_RECURRENT)(
    _with(_of_group(_of_first_group), ("C",))
)
planted("groups_turned", "groups of B in the opposite order", SSD_RECURRENT)(
    _with(_of_group(_turned), ("B",))
)


def _first_head(a):
    return np.broadcast_to(a[:, :, :1], a.shape) if a.ndim > 3 else a


planted("first_head_decay", "log_a of a group's first head for all its heads", SSD_RECURRENT)(
    changing(log_a=_first_head)
)
planted("first_head_input", "x of a group's first head for all its heads", SSD_RECURRENT)(
    changing(x=_first_head)
)
planted("heads_turned", "log_a laid out (h, g) and read as (g, h)", SSD_RECURRENT)(
    changing(log_a=lambda s: np.swapaxes(s, 1, 2).reshape(s.shape) if s.ndim > 3 else s)
)
