"""Numba mirrors of refssm.dplr: Cauchy sums at every node in one pass, gradients by steps."""

from refssm._names import export
from refssm.jit.dplr.aliased import *
from refssm.jit.dplr.kernel import *

export(globals())
