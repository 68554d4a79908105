"""CuPy mirrors of refssm.hope."""

from refssm._declaration.names import export
from refssm_gpu.hope.aliased import *
from refssm_gpu.hope.kernel import *
from refssm_gpu.hope.recency import *
from refssm_gpu.hope.stream import *
from refssm_gpu.hope.transfer import *

export(globals())
