"""HiPPO matrices as normal plus low rank: A = V (diag w − P Pᴴ) Vᴴ, with unitary V.

S4 computes with it: (z − A)⁻¹ is a Cauchy kernel and a correction of the rank of P. A itself is
never to be diagonalized: the eigenvectors of LegS have a condition of 1e23 at n = 32.
"""

from refssm._names import export
from refssm.nplr.legendre import *
from refssm.nplr.waves import *

export(globals())
