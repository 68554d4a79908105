"""Gated units: elementwise recurrences whose decays and inputs are made of gates.

    x_t = a_t x_{t-1} + b_t

Read `rg_lru` (Griffin's, the decay from a gate and a rate), then `min_gru` (the decay and the input
from one gate). Both are `linear_scan` of what their gates make.
"""

from refssm._declaration.names import export
from refssm.gated_units.min_gru import *
from refssm.gated_units.rg_lru import *

export(globals())
