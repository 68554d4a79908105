"""Kernels of the Numba tier, and where they run: on the card, or in the simulator.

With `REFSSM_GPU=host`, as in the tests, arrays are NumPy's and the simulator runs the kernel's
Python source.
"""

# pyright: reportAttributeAccessIssue=false
# (Numba makes attributes when it is imported)

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpu.numba_cuda.field import Field, cuda, int64

from refssm_gpu._launching.kernel import on_host

THREADS = 128  # of a block


@dataclass(frozen=True)
class NumbaKernel:
    """A kernel: `make(field)` is its Python source, closed over an element type.

    `arguments` are their kinds: "e3" an array of elements with three axes, "r2" of real parts, "i1"
    of whole numbers, "i" a whole number.
    """

    make: Callable[[Field], Callable[..., None]]
    arguments: str

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.make.__name__

    def signature(self, field: Field) -> tuple[Any, ...]:
        """The types of its arguments: arrays in one piece of memory, 64-bit whole numbers."""
        kinds = {"e": field.element, "r": field.real, "i": int64}
        return tuple(
            kinds[kind[0]] if len(kind) == 1 else _contiguous(kinds[kind[0]], int(kind[1]))
            for kind in self.arguments.split()
        )

    def __call__(self, field: Field, grid: Sequence[int], block: Sequence[int], *arguments) -> None:
        """Launch it on a grid of blocks; nothing happens if the grid is empty.

        On the card it is put on CuPy's current stream, and need not have ended when this returns.
        """
        if not all(grid):
            return
        if on_host():
            from gpu.numba_cuda.simulator import simulate

            simulate(self.make(field), grid, block, arguments, name=self.name)
        else:
            import cupy  # pyright: ignore[reportMissingImports]

            stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
            _compiled(self, field)[tuple(grid), tuple(block), stream](*map(_given, arguments))


def _contiguous(kind, axes: int):
    """The type of an array whose last axis is fastest."""
    return kind[(*[slice(None)] * (axes - 1), slice(None, None, 1))]


@cache
def _compiled(kernel: NumbaKernel, field: Field):
    return cuda.jit(kernel.make(field))


def _given(x):
    """An array without a wait for its stream: the kernel runs on that stream."""
    return cuda.as_cuda_array(x, sync=False) if hasattr(x, "__cuda_array_interface__") else x
