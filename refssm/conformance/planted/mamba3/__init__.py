"""Planted bugs of Mamba-3, sorted by operator and check."""

from refssm.conformance.planted.mamba3.formula import FORMULA, PLAIN, STATE
from refssm.conformance.planted.mamba3.gradients import GRADIENTS
from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.mamba3 import MAMBA3_SISO_RECURRENCE

USUAL = Planting(PLAIN[0], "float32")
USUAL.usual()
_BUGS = [bug for p in (USUAL, FORMULA, STATE, GRADIENTS) for bug in p.bugs]
# the mistakes that any operator can have show in the form from rest
_ANYWHERE = {bug.name for bug in USUAL.bugs}
_BUGS += [bug for bug in planted_in(MAMBA3_SISO_RECURRENCE, "float32") if bug.name not in _ANYWHERE]
BUGS = sorted(_BUGS, key=lambda bug: (bug.op, bug.caught_by))
