"""Mirrors of refssm.discretize in plain array code: matrix products and elementwise formulas.

Nothing is read back from the card. Diagonal rules are a pass over n numbers; a rule of a matrix is
a solve, or about 40 matrix products for an exponential.
"""

from refssm._declaration.names import export
from refssm_gpu.discretize.diagonal_hold import *
from refssm_gpu.discretize.diagonal_rational import *
from refssm_gpu.discretize.hold import *
from refssm_gpu.discretize.rational import *

export(globals())
