"""Planted bugs of linear attention, sorted by operator and check."""

from refssm.conformance.planted.linear_attention.forms import RECURRENCES
from refssm.conformance.planted.linear_attention.formula import FORMULA
from refssm.conformance.planted.linear_attention.gradients import GRADIENTS
from refssm.conformance.planted.linear_attention.state import STATE
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in

USUAL = [Planting(recurrence.operators[0], "float32") for recurrence in RECURRENCES]
for _planting in USUAL:
    _planting.usual()
_BUGS = [bug for p in (*USUAL, FORMULA, STATE, GRADIENTS) for bug in p.bugs]
for _recurrence in RECURRENCES:
    _BUGS += planted_in(_recurrence, "float32")
# those of one check side by side: what is expected of its cases is then worked out once
BUGS = sorted(_BUGS, key=lambda bug: (bug.op, bug.caught_by))
