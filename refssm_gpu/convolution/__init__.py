"""CuPy mirrors of refssm.convolution: transforms by cuFFT, direct sums by a kernel."""

from refssm._declaration.names import export
from refssm_gpu.convolution.bidirectional import *
from refssm_gpu.convolution.causal import *
from refssm_gpu.convolution.circular import *
from refssm_gpu.convolution.short import *

export(globals())
