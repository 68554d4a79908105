"""What the names in a kernel mean in the simulator: `cuda`, `math`, types, and arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from gpu.numba_cuda.simulated_memory import KernelBug, Memory, Watched
from numba import types

WIDTHS = {"f4": 32, "c8": 32, "f8": 64, "c16": 64}  # bits of a real part


class Index(NamedTuple):
    """A place in a grid or a block, or its sizes."""

    x: int
    y: int
    z: int


class Device:
    """`numba.cuda`, as far as the kernels use it."""

    def __init__(self, memory: Memory, grid: Index, block: Index):
        self.gridDim, self.blockDim = grid, block
        self.threadIdx = self.blockIdx = Index(0, 0, 0)
        self._memory, self._made = memory, 0
        self.atomic = SimpleNamespace(add=_added)

    def shared_at(self, place: Any, shape: Any, dtype: Any) -> Watched:
        """`cuda.shared.array`; `place` is where in the source it stands."""
        return self._memory.shared_array(place, shape, element(dtype))

    def __getattr__(self, name: str) -> Any:
        raise KernelBug(f"the simulator does not know cuda.{name}")


def _added(array: Watched, index: Any, value: Any) -> Any:
    return array.updated(index, lambda before: before + value)


def element(kind: Any) -> Any:
    """NumPy's type for one of Numba's; other things stay. Whole numbers are Python's."""
    if isinstance(kind, types.Integer):
        if kind != types.int64:
            raise KernelBug(f"{kind} in a kernel: offsets need 64 bits")
        return int
    return getattr(np, str(kind)) if isinstance(kind, (types.Float, types.Complex)) else kind


def agree(what: str, *values: Any) -> None:
    """Refuse values that Numba would bring to float64 or complex128 from float32 or complex64."""
    widths = {WIDTHS.get(getattr(v, "dtype", np.dtype(int)).str[1:], 0) for v in values}
    if 32 in widths and len(widths) > 1:
        kinds = " and ".join(str(getattr(v, "dtype", type(v).__name__)) for v in values)
        raise KernelBug(f"`{what}` of {kinds}: Numba computes it in double precision")


def arithmetic(name: str) -> Callable[[Any, Any], Any]:
    """An operation or comparison of two numbers, in their own precision."""
    operate = getattr(operator, name)

    def apply(a: Any, b: Any) -> Any:
        if type(a) is not type(b):
            agree(name, a, b)
        elif name == "truediv" and type(a) is int:
            return np.float64(a) / np.float64(b)
        return operate(a, b)

    return apply


def _elementary(name: str) -> Callable[[Any], Any]:
    function = getattr(np, name)

    def apply(x: Any) -> Any:
        if not isinstance(x, np.floating):
            raise KernelBug(f"math.{name} of a {type(x).__name__}, wanted float32 or float64")
        return function(x)

    return apply


def _complex(re: Any, im: Any) -> Any:
    agree("complex", re, im)
    made = complex(re, im)
    return np.complex64(made) if getattr(re, "dtype", None) == np.float32 else np.complex128(made)


def _half_turns(wave: Callable, kind: Any) -> Callable[[Any], Any]:
    """cos πx or sin πx: the whole turns are removed exactly."""

    def apply(x: Any) -> Any:
        if not isinstance(x, kind):
            raise KernelBug(f"{wave.__name__}(πx) of a {type(x).__name__}, wanted {kind.__name__}")
        return kind(wave(np.pi * np.fmod(np.float64(x), 2)))

    return apply


LIBDEVICE = {
    "cospif": _half_turns(np.cos, np.float32), "sinpif": _half_turns(np.sin, np.float32),
    "cospi": _half_turns(np.cos, np.float64), "sinpi": _half_turns(np.sin, np.float64),
}  # fmt: skip
MATH = SimpleNamespace(**{name: _elementary(name) for name in ("exp", "cos", "sin", "sqrt")})
BUILTINS = {"abs": abs, "range": range, "complex": _complex}
