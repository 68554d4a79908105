"""Numba mirrors of refssm.dplr: blocks of time, or one pass over nodes; of pairs both halves."""

from refssm._declaration.names import export
from refssm.jit.dplr.blocks import *
from refssm.jit.dplr.nodes import *

export(globals())
