"""Mirrors of refssm.diagonal."""

from refssm._names import export
from refssm_gpu.diagonal.shift import *

export(globals())
