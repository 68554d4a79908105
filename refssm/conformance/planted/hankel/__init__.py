"""Planted bugs in the Hankel family; those of Markov parameters are those of a Krylov kernel."""

from dataclasses import replace

from refssm.conformance.planted import bugs_of
from refssm.conformance.planted.hankel import energy
from refssm.conformance.planted.hankel.singular import DENSE, DIAGONAL
from refssm.conformance.planted.hankel.systems import (
    GRAMIAN_BUGS,
    GRAMIAN_DISCRETE_BUGS,
    HANKEL,
    TRANSFER_BUGS,
    TRANSFER_DISCRETE_BUGS,
)
from refssm.conformance.planted.planting import Planting
from refssm.hankel import MARKOV_PARAMETERS

MARKOV = Planting(MARKOV_PARAMETERS, "float32")
MARKOV.usual()
_not_again = {bug.name for bug in MARKOV.bugs} | {"nan_spread", "vjp_turned", "vjp_sign"}
_krylov = (bug for bug in bugs_of("krylov") if bug.name not in _not_again)
MARKOV.bugs += [replace(bug, op=MARKOV.op.name) for bug in _krylov]

HERE = (
    *(HANKEL, MARKOV, TRANSFER_BUGS, TRANSFER_DISCRETE_BUGS),
    *(GRAMIAN_BUGS, GRAMIAN_DISCRETE_BUGS, DENSE, DIAGONAL),
    *(energy.DENSE, energy.DIAGONAL),
)
BUGS = [bug for planting in HERE for bug in planting.bugs]
