"""Tests of the GPU mirror: here on the host build, with NumPy arrays."""

import os

os.environ["REFSSM_GPU"] = "host"  # read when refssm_gpu is imported, which no other test does
