"""Tests of the GPU mirror: on the host build with NumPy arrays; `make test-gpu`: on a card."""

import os

os.environ.setdefault("REFSSM_GPU", "host")  # set to nothing: CuPy arrays
