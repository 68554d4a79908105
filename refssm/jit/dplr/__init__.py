"""Numba mirrors of refssm.dplr: blocks of time; of the aliased kernel one pass over the nodes."""

from refssm._names import export
from refssm.jit.dplr.aliased import *
from refssm.jit.dplr.kernel import *

export(globals())
