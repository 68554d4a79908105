"""Planted bugs of delta_dplr: the rule with a low-rank transition, RWKV-7."""

from refssm.conformance.planted.linear_attention.low_rank.chunks import CHUNKS
from refssm.conformance.planted.linear_attention.low_rank.formula import FORMULA
from refssm.conformance.planted.linear_attention.low_rank.gradients import GRADIENTS
from refssm.conformance.planted.linear_attention.low_rank.state import STATE
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.linear_attention.delta_dplr import DELTA_DPLR, DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS, DELTA_DPLR_CHUNKED

USUAL = [Planting(op, "float32") for op in (DELTA_DPLR, DELTA_DPLR_CHUNKED)]
for _planting in USUAL:
    _planting.usual()
BUGS = [bug for p in (*USUAL, FORMULA, STATE, GRADIENTS, CHUNKS) for bug in p.bugs]
BUGS += planted_in(DELTA_DPLR_RULE, "float32") + planted_in(DELTA_DPLR_BY_CHUNKS, "float32")
