"""CuPy mirrors of refssm.dplr: products of small matrices, and sums over nodes backwards."""

from refssm._declaration.names import export
from refssm_gpu.dplr.aliased import *
from refssm_gpu.dplr.kernel import *
from refssm_gpu.dplr.pairs import *

export(globals())
