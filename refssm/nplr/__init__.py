"""HiPPO matrices as normal plus low rank: A = V (diag w − P Pᴴ) Vᴴ, with unitary V.

S4 computes with this form: (z − A)⁻¹ is a Cauchy kernel plus a correction of the rank of P. Never
diagonalize A itself: the eigenvectors of LegS have a condition number of 1e23 at n = 32.
"""

from refssm._declaration.names import export
from refssm.nplr.legendre import *
from refssm.nplr.waves import *

export(globals())
