"""Numba mirrors of refssm for the CPU, file by file; compiled when imported.

`refssm.jit.linear_scan` imports its family when it is asked for, as `refssm.linear_scan` does.
"""

from refssm._declaration.on_demand import Mirrors as _Mirrors

_mirrors = _Mirrors(__name__, "jit")
__getattr__, __dir__ = _mirrors.attribute, _mirrors.names
