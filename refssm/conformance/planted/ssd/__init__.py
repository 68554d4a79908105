"""Planted bugs of state-space duality, sorted by operator and check."""

from refssm.conformance.planted.cancelling import beside_forms
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.conformance.planted.ssd.call import BUGS as CALLS
from refssm.conformance.planted.ssd.chunks import CHUNKS
from refssm.conformance.planted.ssd.forms import SEQUENCES
from refssm.conformance.planted.ssd.formula import FORMULA
from refssm.conformance.planted.ssd.gradients import GRADIENTS
from refssm.conformance.planted.ssd.state import STATE
from refssm.conformance.planted.ssd.steps import STEPS
from refssm.ssd.chunked import CHUNKED
from refssm.ssd.mamba2 import MAMBA2
from refssm.ssd.recurrent import SSD

USUAL = [Planting(op, "float32") for op in SEQUENCES]
for _planting in USUAL:
    _planting.usual()
_BUGS = [bug for p in (*USUAL, FORMULA, CHUNKS, STATE, STEPS, GRADIENTS) for bug in p.bugs]
_BUGS += beside_forms("ssd")
# in double precision there are more cases, and more of them keep the state after the last step
_BUGS += [*CALLS, *planted_in(MAMBA2, "float64")]
_BUGS += planted_in(SSD, "float32") + planted_in(CHUNKED, "float32")
# those of one check side by side: what is expected of its cases is then worked out once
BUGS = sorted(_BUGS, key=lambda bug: (bug.op, bug.caught_by))
