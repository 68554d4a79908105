"""Convolutions: along a whole sequence, and over a few taps.

    y_i = Σ_{j≤i} k_{i−j} u_j

`causal` is the output of a time-invariant system with impulse response k, by the sum and by the
fast Fourier transform; `circular` wraps around; `bidirectional` also uses future inputs; `short`
has a few taps, and a state for streaming.
"""

from refssm._declaration.names import export
from refssm.convolution.bidirectional import *
from refssm.convolution.causal import *
from refssm.convolution.circular import *
from refssm.convolution.short import *

export(globals())
