"""Numba mirrors of refssm.linear_attention; compiled at the first call."""

from refssm._declaration.names import export
from refssm.jit.linear_attention.chunked import *
from refssm.jit.linear_attention.delta_dplr import *
from refssm.jit.linear_attention.gates import *
from refssm.jit.linear_attention.mirrors import *
from refssm.jit.linear_attention.stages import *

export(globals())
