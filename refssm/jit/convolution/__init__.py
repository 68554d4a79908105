"""Fast forms of refssm.convolution; importing this module compiles them."""

from refssm._declaration.names import export
from refssm.jit.convolution.causal import *
from refssm.jit.convolution.short import *

export(globals())
