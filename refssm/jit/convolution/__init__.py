"""Fast forms of refssm.convolution; compiled when imported."""

from refssm._names import export
from refssm.jit.convolution.causal import *
from refssm.jit.convolution.short import *

export(globals())
