"""Planted bugs of mLSTM, sorted by operator and check."""

from refssm.conformance.planted.planting import Planting
from refssm.conformance.planted.recurrences import planted_in
from refssm.conformance.planted.xlstm.chunks import BUGS as CHUNKS
from refssm.conformance.planted.xlstm.formula import FORMULA, PLAIN, STATE
from refssm.conformance.planted.xlstm.gradients import GRADIENTS
from refssm.xlstm import XLSTM

USUAL = Planting(PLAIN[0], "float32")
USUAL.usual()
_BUGS = [bug for p in (USUAL, FORMULA, STATE, GRADIENTS) for bug in p.bugs]
# the mistakes that any operator can have show in the form from rest
_ANYWHERE = {bug.name for bug in USUAL.bugs}
_BUGS += [bug for bug in planted_in(XLSTM, "float32") if bug.name not in _ANYWHERE]
BUGS = sorted(_BUGS + CHUNKS, key=lambda bug: (bug.op, bug.caught_by))
