"""CuPy mirrors of refssm.linear_attention: recurrences by kernels, the others in array code."""

from refssm._declaration.names import export
from refssm_gpu.linear_attention.chunked import *
from refssm_gpu.linear_attention.delta_dplr import *
from refssm_gpu.linear_attention.gates import *
from refssm_gpu.linear_attention.mirrors import *
from refssm_gpu.linear_attention.stages import *

export(globals())
