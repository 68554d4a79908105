"""Numba mirrors of refssm.cauchy: blocks of nodes in registers and in the L1 cache."""

from refssm._declaration.names import export
from refssm.jit.cauchy.halves import *
from refssm.jit.cauchy.kernel import *
from refssm.jit.cauchy.resolvent import *

export(globals())
