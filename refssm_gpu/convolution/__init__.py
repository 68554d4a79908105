"""CuPy mirrors of refssm.convolution."""

from refssm._names import export
from refssm_gpu.convolution.short import *

export(globals())
