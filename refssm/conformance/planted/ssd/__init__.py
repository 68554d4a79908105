"""Planted bugs of state-space duality, operator by operator and check by check."""

from refssm.conformance.honest.ssd.forms import SEQUENCES
from refssm.conformance.planted.planting_old import Planting
from refssm.conformance.planted.ssd.attention import DEVIATIONS as ATTENTION
from refssm.conformance.planted.ssd.chunks import DEVIATIONS as CHUNKS
from refssm.conformance.planted.ssd.groups import DEVIATIONS as GROUPS
from refssm.conformance.planted.ssd.packed import DEVIATIONS as PACKED
from refssm.conformance.planted.ssd.recurrence import DEVIATIONS as RECURRENCE
from refssm.conformance.planted.ssd.state import DEVIATIONS as STATE
from refssm.conformance.planted.ssd.steps import DEVIATIONS as STEPS
from refssm.conformance.planted.ssd.vjp import DEVIATIONS as GRADIENTS
from refssm.ssd import SSD_STEP


def _usual(op):
    """What goes wrong in any implementation."""
    planting = Planting(op, "float32")
    planting.usual()
    return planting.bugs


_PLANTED = [bug for op in (*SEQUENCES, SSD_STEP) for bug in _usual(op)]
_PLANTED += [*RECURRENCE, *ATTENTION, *CHUNKS, *PACKED, *STATE, *GROUPS, *STEPS, *GRADIENTS]
# those of one check side by side: what is expected of its cases is then worked out once
DEVIATIONS = sorted(_PLANTED, key=lambda bug: (bug.op, bug.caught_by))
