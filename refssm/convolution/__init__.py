"""Convolutions: along a whole sequence, and over a few taps."""

from refssm._declaration.names import export
from refssm.convolution.activated import *
from refssm.convolution.short import *
from refssm.convolution.whole import *

export(globals())
