"""Planted bugs of delta_dplr: the rule with a low-rank transition, RWKV-7."""

from refssm.conformance.planted.linear_attention.low_rank.formula import FORMULA
from refssm.conformance.planted.linear_attention.low_rank.gradients import GRADIENTS
from refssm.conformance.planted.linear_attention.low_rank.state import STATE
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.linear_attention.delta_dplr import DELTA_DPLR, DELTA_DPLR_RULE

USUAL = Planting(DELTA_DPLR, "float32")
USUAL.usual()
BUGS = [bug for p in (USUAL, FORMULA, STATE, GRADIENTS) for bug in p.bugs]
BUGS += planted_in(DELTA_DPLR_RULE, "float32")
