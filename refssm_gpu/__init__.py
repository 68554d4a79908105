"""CuPy and CUDA mirrors of refssm: the same names, arguments and results, in the same families.

    import cupy
    import refssm_gpu

    x = refssm_gpu.linear_scan(cupy.asarray(a), cupy.asarray(b))

A name imports its family when it is asked for, as in refssm; `from refssm_gpu.scan import
linear_scan` is the same function. A family is a module (`refssm_gpu.cauchy`), or a package where it
is long: `scan`, `selective_scan`, `ssd` and `dplr`. Operators that run once, to make a model's
matrices, have no mirror. The CUDA C++ sources are in `kernels`; `_launching` declares, compiles and
launches them, `_algebra` is what families of array code share. `_host` is the build for the
processor.

The package imports on any machine. A call needs a CUDA GPU and CuPy (`cupy-cuda13x[ctk]`, or
`cupy-cuda12x[ctk]` for CUDA 12); without them it raises `NoCard`, one sentence that says what is
missing. Calls run on CuPy's current stream and do not wait for it.

With `REFSSM_GPU=host` in the environment the functions take NumPy arrays: a C++ compiler builds the
same CUDA sources for the processor, one thread after another. That is slow and made for tests.
"""

from refssm._declaration.on_demand import Mirrors as _Mirrors
from refssm_gpu._launching.missing import NoCard

__all__ = ["NoCard"]

_mirrors = _Mirrors(__name__, "gpu")
__getattr__, __dir__ = _mirrors.attribute, _mirrors.names
