"""The second tier: three operators as `numba.cuda` kernels, an independent check of the first.

No line is shared with the kernels in CUDA C++; complex division is shared with the mirrors for the
CPU. The kernels use shared memory and barriers only, so that `simulator.py` can run their Python
source without a GPU.
"""
