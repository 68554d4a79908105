"""Planted bugs of linear attention, sorted by operator and check."""

from refssm.conformance.planted.linear_attention.chunks import BUGS as CHUNKS
from refssm.conformance.planted.linear_attention.forms import RECURRENCES
from refssm.conformance.planted.linear_attention.formula import FORMULA
from refssm.conformance.planted.linear_attention.gates import GATES
from refssm.conformance.planted.linear_attention.gradients import GRADIENTS
from refssm.conformance.planted.linear_attention.low_rank import BUGS as LOW_RANK
from refssm.conformance.planted.linear_attention.rwkv6 import BUGS as RWKV6
from refssm.conformance.planted.linear_attention.stages import BUGS as STAGES
from refssm.conformance.planted.linear_attention.state import STATE
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI

USUAL = [Planting(recurrence.operators[0], "float32") for recurrence in RECURRENCES]
for _planting in USUAL:
    _planting.usual()
_BUGS = [bug for p in (*USUAL, FORMULA, STATE, GRADIENTS, *GATES) for bug in p.bugs]
_BUGS += planted_in(GATED_DELTA, "float32") + planted_in(KIMI, "float32")
# the mistakes that any operator can have show in the forms by pieces of two recurrences
_ANYWHERE = {bug.name for bug in USUAL[0].bugs}
for _recurrence in (GATED_LINEAR, DELTA):
    _BUGS += [bug for bug in planted_in(_recurrence, "float32") if bug.name not in _ANYWHERE]
_BUGS += CHUNKS + STAGES + RWKV6 + LOW_RANK
# those of one check side by side: what is expected of its cases is then worked out once
BUGS = sorted(_BUGS, key=lambda bug: (bug.op, bug.caught_by))
