"""Hankel operators: what a linear system remembers of the past, as one matrix.

    H_ij = h_(i+j),   h_k = C A^k B,   H = O R,   O the rows C A^i, R the columns A^j B

H maps past inputs to future outputs. The gramians RRᴴ and OᴴO measure what reaches the state and
what is seen of it, and the transfer function is the system's answer at one frequency.
"""

from refssm._names import export
from refssm.hankel.diagonal import *
from refssm.hankel.gramians import *
from refssm.hankel.matrix import *
from refssm.hankel.reduction import *
from refssm.hankel.singular import *
from refssm.hankel.supremum import *
from refssm.hankel.transfer import *

export(globals())
