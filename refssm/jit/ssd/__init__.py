"""Numba mirrors of refssm.ssd except the quadratic form; compiled on import."""

from refssm._declaration.names import export
from refssm.jit.ssd.chunked import *
from refssm.jit.ssd.recurrent import *

export(globals())
