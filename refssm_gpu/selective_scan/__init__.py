"""CuPy mirrors of refssm.selective_scan: one kernel for each direction."""

from refssm._declaration.names import export
from refssm_gpu.selective_scan.mirrors import *

export(globals())
