"""State-space duality, Mamba-2's layer: one function in three forms [dao2024mamba2].

    S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ,    y_t = S_t C_t

Read `recurrent`, then `quadratic` (the same as masked attention), then `chunked`, which combines
both. The tests check that each form agrees with the one before. `mamba2` is Mamba-2's whole call
around them.
"""

from refssm._declaration.names import export
from refssm.ssd.chunked import *
from refssm.ssd.mamba2 import *
from refssm.ssd.quadratic import *
from refssm.ssd.recurrent import *

export(globals())
