"""Kernels of the tests themselves, for the host build."""

from pathlib import Path

from refssm_gpu._launching.kernel import Kernel

PLANTED = Path(__file__).parent / "planted"


def kernel(name, *instance, file="features.cuh", block=64):
    """A function that launches `name<instance>`: `run(grid, *arguments, shared=0)`."""
    declared = Kernel(str(PLANTED / file), name, (instance,), block, registers=64)

    def run(grid, *arguments, shared=0):
        declared(instance, grid if isinstance(grid, tuple) else (grid,), *arguments, shared=shared)

    run.kernel = declared
    return run
