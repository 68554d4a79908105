"""Recurrences of time-invariant and time-varying linear systems: the state update of every SSM.

    x_k = a_k x_{k-1} + b_k        elementwise in the state: `linear`
    x_k = A x_{k-1} + b_k          with a matrix: `dense`
    y_k = C x_k + D u_k            with several inputs and outputs, as in S5: `diagonal`

Read `linear` first. The others build on it.
"""

from refssm._declaration.names import export
from refssm.scan.bidirectional import *
from refssm.scan.dense import *
from refssm.scan.diagonal import *
from refssm.scan.diagonal_real import *
from refssm.scan.diagonal_stateful import *
from refssm.scan.linear import *

export(globals())
