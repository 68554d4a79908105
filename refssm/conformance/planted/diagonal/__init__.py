"""Planted bugs in the kernels of diagonal systems, file by file."""

from refssm.conformance.planted.diagonal import held
from refssm.conformance.planted.diagonal.bilinear import BILINEAR
from refssm.conformance.planted.diagonal.ema import EMA
from refssm.conformance.planted.diagonal.shift import SHIFT
from refssm.conformance.planted.diagonal.softmax import SOFTMAX

BUGS = [*held.BUGS, *BILINEAR.bugs, *SOFTMAX.bugs, *EMA.bugs, *SHIFT.bugs]
