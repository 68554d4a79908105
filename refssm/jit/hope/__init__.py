"""Numba mirrors of refssm.hope: SIMD lanes hold nodes (Horner's rule) or stages (cascade waves)."""

from refssm._declaration.names import export
from refssm.jit.hope.aliased import *
from refssm.jit.hope.kernel import *
from refssm.jit.hope.recency import *
from refssm.jit.hope.stream import *
from refssm.jit.hope.transfer import *

export(globals())
