"""Planted bugs of refssm.selective_scan: what goes wrong anywhere, and what this family has of it.

Steps, chunks, what Mamba puts before and after, states, packed sequences, gradients: by file.
"""

from refssm.conformance.deviations import (
    selective_scan_chunks,
    selective_scan_gate,
    selective_scan_packed,
    selective_scan_state,
    selective_scan_steps,
    selective_scan_vjp,
)
from refssm.conformance.deviations.planting import Planting
from refssm.conformance.deviations.selective_scan_base import EACH
from refssm.conformance.plugin import operator_named

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
