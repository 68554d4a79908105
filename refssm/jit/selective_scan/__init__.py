"""Numba mirrors of refssm.selective_scan, compiled on import: one kernel for each direction."""

from refssm._declaration.names import export
from refssm.jit.selective_scan.mamba import *
from refssm.jit.selective_scan.selective import *

export(globals())
