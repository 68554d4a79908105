"""Mirrors of refssm.convolution: transforms by cuFFT."""

from refssm._names import export
from refssm_gpu.convolution.bidirectional import *
from refssm_gpu.convolution.causal import *
from refssm_gpu.convolution.circular import *

export(globals())
