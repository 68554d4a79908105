"""Kernels of diagonal systems, computed from their continuous parameters, and two similar kernels.

    K_k = Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

`discretized` computes Ā and B̄ by zero-order hold or the bilinear map (S4D), and the same for
conjugate pairs, twice the real part. `dss` has the two kernels of diagonal state spaces. `ema`
is Mega's moving average; `liquid` multiplies inputs; `shift` is the system that only stores inputs.
"""

from refssm._declaration.names import export
from refssm.diagonal.discretized import *
from refssm.diagonal.dss import *
from refssm.diagonal.ema import *
from refssm.diagonal.liquid import *
from refssm.diagonal.shift import *

export(globals())
