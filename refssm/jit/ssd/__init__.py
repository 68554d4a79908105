"""Numba mirrors of refssm.ssd except the quadratic form; compiled at the first call."""

from refssm._declaration.names import export
from refssm.jit.ssd.mamba2 import *
from refssm.jit.ssd.recurrent import *

export(globals())
