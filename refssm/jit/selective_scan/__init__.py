"""Numba mirrors of refssm.selective_scan, compiled at the first call; a kernel a direction."""

from refssm._declaration.names import export
from refssm.jit.selective_scan.mamba import *
from refssm.jit.selective_scan.selective import *

export(globals())
