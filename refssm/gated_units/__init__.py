"""Gated units: elementwise recurrences whose decays and inputs are made of gates.

    x_t = a_t x_{t-1} + b_t

Read `real_gated` (Griffin's, the decay from a gate and a rate), then `minimal_gated` (minGRU, the
decay and the input from one gate). Both are `linear_scan` of what their gates make.
"""

from refssm._declaration.names import export
from refssm.gated_units.minimal_gated import *
from refssm.gated_units.real_gated import *

export(globals())
