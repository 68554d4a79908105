"""Numba mirrors of refssm.dplr: one pass over the nodes, gradients step by step."""

from refssm._names import export
from refssm.jit.dplr.aliased import *
from refssm.jit.dplr.kernel import *

export(globals())
