"""Numba mirrors of refssm.gated_units, compiled at the first call."""

from refssm._declaration.names import export
from refssm.jit.gated_units.minimal_gated import *
from refssm.jit.gated_units.real_gated import *

export(globals())
