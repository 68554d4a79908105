"""Hankel operators: the map from past inputs to future outputs, as one matrix.

    H_ij = h_(i+j),   h_k = C A^k B,   H = O R,   O the rows C A^i, R the columns A^j B

The gramians RRᴴ and OᴴO measure how strongly inputs reach the state, and how strongly the state
reaches the output. The transfer function is the system's gain at one frequency.
"""

from refssm._declaration.names import export
from refssm.hankel.diagonal import *
from refssm.hankel.energy import *
from refssm.hankel.gramians import *
from refssm.hankel.identification import *
from refssm.hankel.matrix import *
from refssm.hankel.optimal import *
from refssm.hankel.reduction import *
from refssm.hankel.transfer import *

export(globals())
