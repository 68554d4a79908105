"""Kernels of the tests themselves, for the host build."""

import os
from pathlib import Path
from unittest.mock import patch

from refssm_gpu._launching.kernel import Kernel

PLANTED = Path(__file__).parent / "planted"


def kernel(name, *instance, file="features.cuh", block=64):
    """A function that launches `name<instance>`: `run(grid, *arguments, shared=0)`."""
    declared = Kernel(str(PLANTED / file), name, (instance,), block, registers=64)

    def run(grid, *arguments, shared=0):
        blocks = grid if isinstance(grid, tuple) else (grid,)
        with patch.dict(os.environ, REFSSM_GPU="host"):  # where the other tests use a card, too
            declared(instance, blocks, *arguments, shared=shared)

    return run
