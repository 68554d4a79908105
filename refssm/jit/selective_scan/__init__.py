"""Numba mirrors of refssm.selective_scan: one kernel each way; compiled when imported."""

from refssm._names import export
from refssm.jit.selective_scan.mamba import *
from refssm.jit.selective_scan.selective import *

export(globals())
