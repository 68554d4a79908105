"""Mirrors of refssm.diagonal."""

from refssm._declaration.names import export
from refssm_gpu.diagonal.discretized import *
from refssm_gpu.diagonal.dss import *
from refssm_gpu.diagonal.ema import *
from refssm_gpu.diagonal.liquid import *
from refssm_gpu.diagonal.pairs import *
from refssm_gpu.diagonal.shift import *

export(globals())
