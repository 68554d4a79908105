"""CuPy mirrors of refssm.scan: one kernel for each direction, and matrix products around it."""

from refssm._declaration.names import export
from refssm_gpu.scan.dense import *
from refssm_gpu.scan.diagonal import *
from refssm_gpu.scan.linear import *

export(globals())
