"""Numba mirrors of refssm.ssd but the quadratic form; compiled when imported."""

from refssm._names import export
from refssm.jit.ssd.chunked import *
from refssm.jit.ssd.recurrent import *

export(globals())
