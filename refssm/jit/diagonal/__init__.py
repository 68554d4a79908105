"""Numba mirrors of refssm.diagonal: tables of powers, and two kernels that are summed directly."""

from refssm._declaration.names import export
from refssm.jit.diagonal.kernels import *
from refssm.jit.diagonal.liquid import *
from refssm.jit.diagonal.shift import *

export(globals())
