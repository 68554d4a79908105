"""CuPy and CUDA mirrors of refssm, file by file; none exists yet: every operator lacks "gpu"."""
