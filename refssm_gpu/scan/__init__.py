"""CuPy mirrors of refssm.scan: one kernel for each direction, and matrix products around it."""

from refssm._names import export
from refssm_gpu.scan.linear import *

export(globals())
