"""CuPy mirrors of refssm.ssd: all forms run the kernels of `passes`, a step those of `steps`."""

from refssm._declaration.names import export
from refssm_gpu.ssd.chunked import *
from refssm_gpu.ssd.packed import *
from refssm_gpu.ssd.quadratic import *
from refssm_gpu.ssd.recurrent import *

export(globals())
