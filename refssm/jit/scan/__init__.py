"""Numba mirrors of refssm.scan, compiled at the first call: one kernel, but for dense scans."""

from refssm._declaration.names import export
from refssm.jit.scan.dense import *
from refssm.jit.scan.diagonal import *
from refssm.jit.scan.diagonal_real import *
from refssm.jit.scan.linear import *

export(globals())
