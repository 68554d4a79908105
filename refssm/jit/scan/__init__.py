"""Numba mirrors of refssm.scan, compiled on import: one kernel for all but the dense scans."""

from refssm._declaration.names import export
from refssm.jit.scan.dense import *
from refssm.jit.scan.diagonal import *
from refssm.jit.scan.diagonal_real import *
from refssm.jit.scan.linear import *

export(globals())
