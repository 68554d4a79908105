"""CuPy and CUDA mirrors of refssm, file by file; none stands yet, every operator lists its own."""
