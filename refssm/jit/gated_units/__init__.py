"""Numba mirrors of refssm.gated_units, compiled at the first call."""

from refssm._declaration.names import export
from refssm.jit.gated_units.min_gru import *
from refssm.jit.gated_units.rg_lru import *

export(globals())
