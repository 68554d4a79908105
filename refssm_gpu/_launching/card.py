"""Launches on the card: NVRTC compiles an instance at its first call, CuPy keeps the result."""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache
from typing import Any

import cupy

from refssm_gpu._launching.kernel import Grid, Instance, Kernel, inlined

OPTIONS = ("-std=c++17",)  # CuPy adds -ftz=true: single precision has no subnormal numbers
ORDINARY_SHARED = 48 * 1024  # bytes; a function asks for more before it gets more


class Card:
    """CuPy's current device and stream; a launch returns before the kernel has run."""

    array = cupy.ndarray

    @property
    def multiprocessors(self) -> int:
        """Of the current device."""
        return cupy.cuda.Device().attributes["MultiProcessorCount"]

    def launch(
        self, kernel: Kernel, instance: Instance, grid: Grid, arguments: tuple, shared: int
    ) -> None:
        """Start one kernel."""
        function = _compiled(kernel, instance)
        if shared > max(ORDINARY_SHARED, function.max_dynamic_shared_size_bytes):
            function.max_dynamic_shared_size_bytes = shared
        function(grid, (kernel.block,), arguments, shared_mem=shared)


@cache
def _compiled(kernel: Kernel, instance: Instance) -> Any:
    """The instance as a function of CuPy; its module is loaded into each device's context."""
    name = kernel.expression(instance)
    module = cupy.RawModule(code=inlined(kernel.source), options=OPTIONS, name_expressions=(name,))
    return module.get_function(name)


TARGET = Card()
