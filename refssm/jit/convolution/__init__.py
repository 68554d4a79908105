"""Numba mirrors of refssm.convolution."""

from refssm._declaration.names import export
from refssm.jit.convolution.activated import *
from refssm.jit.convolution.short import *
from refssm.jit.convolution.whole import *

export(globals())
