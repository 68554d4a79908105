"""Planted bugs in the Hankel family; those of Markov parameters are a Krylov kernel's."""

from refssm.conformance.planted import krylov
from refssm.conformance.planted.hankel import dense as hankel_dense
from refssm.conformance.planted.hankel import gramians as hankel_gramians
from refssm.conformance.planted.hankel import matrix as hankel_matrix
from refssm.conformance.planted.hankel import singular as hankel_singular
from refssm.conformance.planted.hankel import transfer as hankel_transfer
from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import MARKOV_PARAMETERS

MARKOV = Planting(MARKOV_PARAMETERS, "float32")
MARKOV.usual()
for _table, _dtype in ((krylov.FORWARD, ""), (krylov.COMPLEX, "complex64")):
    for _name, (_what, _kernel) in _table.items():
        MARKOV.forward(_name, _what, dtype=_dtype)(_kernel)
for _table, _dtype in ((krylov.GRADIENTS, ""), (krylov.COMPLEX_GRADIENTS, "complex64")):
    for _name, (_what, _vjp) in _table.items():
        MARKOV.gradient(_name, _what, _dtype)(_vjp)

DEVIATIONS = [
    *hankel_matrix.DEVIATIONS,
    *MARKOV.bugs,
    *hankel_transfer.DEVIATIONS,
    *hankel_gramians.DEVIATIONS,
    *hankel_dense.DENSE,
    *hankel_singular.SINGULAR,
]
