"""Convolution kernels of diagonal plus low-rank systems, A = diag w − P Qᴴ: S4's."""

from refssm._names import export
from refssm.dplr.aliased import *
from refssm.dplr.kernel import *

export(globals())
