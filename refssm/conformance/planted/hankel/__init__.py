"""Planted bugs in the Hankel family; those of Markov parameters are a Krylov kernel's."""

from dataclasses import replace

from refssm.conformance.planted import bugs_of
from refssm.conformance.planted.hankel import gramians, matrix, transfer
from refssm.conformance.planted.hankel.singular_values import SINGULAR_VALUES
from refssm.conformance.planted.planting import Planting
from refssm.hankel import MARKOV_PARAMETERS

MARKOV = Planting(MARKOV_PARAMETERS, "float32")
MARKOV.usual()
_here = {bug.name for bug in MARKOV.bugs} | {"nan_spread", "vjp_turned", "vjp_sign"}
MARKOV.bugs += [
    replace(bug, op=MARKOV.op.name) for bug in bugs_of("krylov") if bug.name not in _here
]

BUGS = [
    *matrix.HANKEL.bugs,
    *MARKOV.bugs,
    *transfer.CONTINUOUS.bugs,
    *transfer.DISCRETE.bugs,
    *gramians.CONTINUOUS.bugs,
    *gramians.DISCRETE.bugs,
    *SINGULAR_VALUES,
]
