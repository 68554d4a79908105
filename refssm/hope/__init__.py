"""HOPE: kernels from n Markov parameters, on a circle warped by the step size [yu2024hope]."""

from refssm._declaration.names import export
from refssm.hope.aliased import *
from refssm.hope.kernel import *
from refssm.hope.recency import *
from refssm.hope.stream import *
from refssm.hope.system import *
from refssm.hope.transfer import *

export(globals())
