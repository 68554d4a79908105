"""CuPy and CUDA mirrors of refssm, file by file: the same names, arguments and results.

    import cupy
    from refssm_gpu.scan import linear_scan

    x = linear_scan(cupy.asarray(a), cupy.asarray(b))

The package imports on any machine. A call needs a CUDA GPU and CuPy (`pip install 'refssm[gpu]'`);
without them it raises `NoCard`, one sentence that says what is missing. Calls run on CuPy's current
stream and do not wait for it.

With `REFSSM_GPU=host` in the environment the functions take NumPy arrays: a C++ compiler builds the
same CUDA sources for the processor, one thread after another. That is slow and made for tests.
"""

from refssm_gpu._launching.missing import NoCard

__all__ = ["NoCard"]
