"""CuPy mirrors of refssm.hope."""

from refssm._names import export
from refssm_gpu.hope.recency import *
from refssm_gpu.hope.stream import *

export(globals())
