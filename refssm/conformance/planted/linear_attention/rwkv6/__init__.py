"""Planted bugs of RWKV-6."""

from refssm.conformance.planted.linear_attention.rwkv6.chunks import BUGS as CHUNKS
from refssm.conformance.planted.linear_attention.rwkv6.formula import FORMULA, STATE
from refssm.conformance.planted.linear_attention.rwkv6.gradients import GRADIENTS
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.linear_attention.rwkv6 import RWKV6, RWKV6_RECURRENCE

USUAL = Planting(RWKV6, "float32")
USUAL.usual()
# the mistakes that any operator can have show in the forms by pieces of other recurrences
_ANYWHERE = {bug.name for bug in USUAL.bugs}
BUGS = [bug for p in (USUAL, FORMULA, STATE, GRADIENTS) for bug in p.bugs]
BUGS += [bug for bug in planted_in(RWKV6_RECURRENCE, "float32") if bug.name not in _ANYWHERE]
BUGS += CHUNKS
