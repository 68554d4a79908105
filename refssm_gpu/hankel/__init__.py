"""Mirrors of refssm.hankel: matrices, Markov parameters and transfer functions.

Gramians and singular values have none: CuPy has no Schur form and no Lyapunov solver.
"""

from refssm._declaration.names import export
from refssm_gpu.hankel.matrix import *
from refssm_gpu.hankel.transfer import *

export(globals())
