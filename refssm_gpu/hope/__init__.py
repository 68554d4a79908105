"""Mirrors of refssm.hope."""

from refssm._names import export
from refssm_gpu.hope.recency import *

export(globals())
