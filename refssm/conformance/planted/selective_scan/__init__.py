"""Planted bugs of refssm.selective_scan: what goes wrong anywhere, and what this family has of it.

Steps, chunks, what Mamba puts before and after, states, packed sequences, gradients: by file.
"""

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.selective_scan.chunks import CHUNKS
from refssm.conformance.planted.selective_scan.gate import GATES
from refssm.conformance.planted.selective_scan.gradients import GRADIENTS
from refssm.conformance.planted.selective_scan.packed import RESETS
from refssm.conformance.planted.selective_scan.programs import EACH
from refssm.conformance.planted.selective_scan.state import STATES
from refssm.conformance.planted.selective_scan.steps import STEPS

BUGS = []
for _name in EACH:
    _planting = Planting(operator_named(_name), "float32")
    _planting.usual()
    BUGS += _planting.bugs
for _more in (STEPS, CHUNKS, GATES, STATES, RESETS, GRADIENTS):
    BUGS += _more.bugs
BUGS.sort(key=lambda bug: (bug.op, bug.caught_by))  # those judged on the same cases together
