"""HiPPO: linear systems whose state is a projection of the input's past.

Eight measures in closed form, (A, B) of any other measure by quadrature, initial poles of the
diagonal models derived from them, the states after each input, and reconstruction of the past from
the states.
"""

from refssm._declaration.names import export
from refssm.hippo.diagonal import *
from refssm.hippo.measure import *
from refssm.hippo.memory import *
from refssm.hippo.reconstruct import *
from refssm.hippo.scaled import *
from refssm.hippo.systems import *

export(globals())
