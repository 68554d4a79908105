"""Selective scans: diagonal systems with time-dependent step size, input and output [gu2023mamba].

    x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k,    y_k = C_k · x_k

`selective` is the recurrence and its gradient; `mamba` adds a softplus before it, a skip connection
and a gate.
"""

from refssm._declaration.names import export
from refssm.selective_scan.mamba import *
from refssm.selective_scan.selective import *

export(globals())
