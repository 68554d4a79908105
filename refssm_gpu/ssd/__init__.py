"""CuPy mirrors of refssm.ssd: all forms run the kernels of `passes`."""

from refssm._declaration.names import export
from refssm_gpu.ssd.mamba2 import *
from refssm_gpu.ssd.mirrors import *

export(globals())
