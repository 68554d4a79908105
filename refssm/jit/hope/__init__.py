"""Numba mirrors of refssm.hope: SIMD lanes hold nodes (Horner's rule) or stages (cascade waves)."""

from refssm._declaration.names import export
from refssm.jit.hope.cascade import *
from refssm.jit.hope.recency import *
from refssm.jit.hope.warped import *

export(globals())
