"""S4's convolution kernels of diagonal plus low-rank systems, A = diag w − P Qᴴ."""

from refssm._declaration.names import export
from refssm.dplr.aliased import *
from refssm.dplr.kernel import *
from refssm.dplr.pairs import *

export(globals())
