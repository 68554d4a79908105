"""Planted bugs of state-space duality, operator by operator and check by check."""

from refssm.conformance.deviations.planting import Planting
from refssm.conformance.deviations.ssd_attention import DEVIATIONS as ATTENTION
from refssm.conformance.deviations.ssd_chunks import DEVIATIONS as CHUNKS
from refssm.conformance.deviations.ssd_groups import DEVIATIONS as GROUPS
from refssm.conformance.deviations.ssd_packed import DEVIATIONS as PACKED
from refssm.conformance.deviations.ssd_recurrence import DEVIATIONS as RECURRENCE
from refssm.conformance.deviations.ssd_state import DEVIATIONS as STATE
from refssm.conformance.deviations.ssd_steps import DEVIATIONS as STEPS
from refssm.conformance.deviations.ssd_vjp import DEVIATIONS as GRADIENTS
from refssm.conformance.honest.ssd_forms import SEQUENCES
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
