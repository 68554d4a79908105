"""HiPPO: what a linear system must be for its state to be a projection of its input's past.

Eight measures in closed form, (A, B) of any other by quadrature, the initial poles of diagonal
models that were derived from them; what a memory holds, and what comes back from it.
"""

from refssm._names import export
from refssm.hippo.chebyshev import *
from refssm.hippo.diagonal import *
from refssm.hippo.fourier import *
from refssm.hippo.laguerre import *
from refssm.hippo.legendre import *
from refssm.hippo.measure import *
from refssm.hippo.memory import *
from refssm.hippo.reconstruct import *
from refssm.hippo.rescale import *

export(globals())
