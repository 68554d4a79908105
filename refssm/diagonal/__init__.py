"""Kernels of diagonal systems from their continuous parameters, and of two with none.

    K_k = Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

`discretized` takes Ā and B̄ from zero-order hold or the bilinear map (S4D), `dss` has the two of
diagonal state spaces, `ema` is Mega's moving average, `shift` the system that only remembers.
"""

from refssm._names import export
from refssm.diagonal.discretized import *
from refssm.diagonal.dss import *
from refssm.diagonal.ema import *
from refssm.diagonal.shift import *

export(globals())
