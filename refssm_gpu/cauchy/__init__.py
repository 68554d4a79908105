"""CuPy mirrors of refssm.cauchy: sums at given nodes, and at the roots of unity by a transform."""

from refssm._declaration.names import export
from refssm_gpu.cauchy.kernel import *
from refssm_gpu.cauchy.pairs import *
from refssm_gpu.cauchy.resolvent import *

export(globals())
