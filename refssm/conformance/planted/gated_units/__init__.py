"""Planted bugs of gated units, sorted by operator and check."""

from refssm.conformance.planted.gated_units.formula import BUGS as FORMULA
from refssm.conformance.planted.gated_units.gradients import BUGS as GRADIENTS
from refssm.conformance.planted.recurrences import planted_in
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.gated_units.real_gated import REAL_GATED

_PIECES = [bug for r in (REAL_GATED, MINIMAL_GATED) for bug in planted_in(r, "float32")]
# those of one check side by side: what is expected of its cases is then worked out once
BUGS = sorted([*FORMULA, *GRADIENTS, *_PIECES], key=lambda bug: (bug.op, bug.caught_by))
