"""Planted bugs of refssm.selective_scan: what goes wrong anywhere, and what this family has of it.

Steps, chunks, what Mamba puts before and after, states, packed sequences, gradients: by file.
"""

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.planted.planting_old import Planting
from refssm.conformance.planted.selective_scan import chunks as selective_scan_chunks
from refssm.conformance.planted.selective_scan import gate as selective_scan_gate
from refssm.conformance.planted.selective_scan import packed as selective_scan_packed
from refssm.conformance.planted.selective_scan import state as selective_scan_state
from refssm.conformance.planted.selective_scan import steps as selective_scan_steps
from refssm.conformance.planted.selective_scan import vjp as selective_scan_vjp
from refssm.conformance.planted.selective_scan.base import EACH

DEVIATIONS = []
for _name in EACH:
    _planting = Planting(operator_named(_name), "float32")
    _planting.usual()
    DEVIATIONS += _planting.bugs
for _module in (
    selective_scan_steps,
    selective_scan_chunks,
    selective_scan_gate,
    selective_scan_state,
    selective_scan_packed,
    selective_scan_vjp,
):
    DEVIATIONS += _module.DEVIATIONS
DEVIATIONS.sort(key=lambda bug: (bug.op, bug.caught_by))  # those judged on the same cases together
