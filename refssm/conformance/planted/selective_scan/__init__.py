"""Planted bugs of refssm.selective_scan: the usual ones, and those of this family.

Its files: steps, chunks, the parts of Mamba around the scan, states and resets, gradients.
"""

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.cancelling import beside_forms
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import of_groups, planted_in
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.chunks import CHUNKS
from refssm.conformance.planted.selective_scan.gate import GATES
from refssm.conformance.planted.selective_scan.gradients import GRADIENTS
from refssm.conformance.planted.selective_scan.state import STATES
from refssm.conformance.planted.selective_scan.steps import STEPS
from refssm.selective_scan.mamba import MAMBA
from refssm.selective_scan.selective import SELECTIVE

USUAL = [Planting(operator_named(name), "float32") for name in on.EACH]
for _planting in USUAL:
    _planting.usual()
BUGS = [bug for by in (*USUAL, STEPS, CHUNKS, GATES, STATES, GRADIENTS) for bug in by.bugs]
BUGS += beside_forms("selective_scan")
BUGS += planted_in(SELECTIVE, "float32") + planted_in(MAMBA, "float32")
for _op in SELECTIVE.operators + MAMBA.operators:
    BUGS += of_groups(_op, "float32")
BUGS.sort(key=lambda bug: (bug.op, bug.caught_by))  # those judged on the same cases together
