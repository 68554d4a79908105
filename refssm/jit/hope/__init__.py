"""Numba mirrors of refssm.hope: Horner's rule across nodes, waves of a cascade across stages."""

from refssm._names import export
from refssm.jit.hope.aliased import *
from refssm.jit.hope.kernel import *
from refssm.jit.hope.recency import *
from refssm.jit.hope.stream import *
from refssm.jit.hope.transfer import *

export(globals())
