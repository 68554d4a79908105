"""Mirrors of refssm.hippo: rescaled memories, states and reconstructions.

The matrices themselves have none: they are made once, on the CPU.
"""

from refssm._declaration.names import export
from refssm_gpu.hippo.memory import *
from refssm_gpu.hippo.reconstruct import *
from refssm_gpu.hippo.rescale import *

export(globals())
