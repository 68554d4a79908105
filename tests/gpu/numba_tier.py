"""The Numba tier, its calls at small sizes, and planted bugs; the simulator runs all of it."""

from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from gpu.numba_cuda import cauchy, scan, selective_scan, simulator
from gpu.numba_cuda.launch import NumbaKernel

from refssm.cauchy import CAUCHY_KERNEL
from refssm.scan import LINEAR_SCAN
from refssm.selective_scan import SELECTIVE_SCAN

OPERATORS = {LINEAR_SCAN: scan, CAUCHY_KERNEL: cauchy, SELECTIVE_SCAN: selective_scan}
TYPES = ("float32", "float64", "complex64", "complex128")
KERNELS = {
    k.name: k for m in OPERATORS.values() for k in vars(m).values() if type(k) is NumbaKernel
}


class Call(NamedTuple):
    """A call whose kernels have ragged tails, several blocks, and two tiles or more."""

    function: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]

    def __call__(self):
        y = self.function(*self.arrays)
        return y if isinstance(y, tuple) else (y,)


def drawn(kind: str, *shape: int) -> np.ndarray:
    """Whole numbers from −2 to 2, in both parts: their sums and products are exact."""
    random = np.random.default_rng(len(shape))
    parts = random.integers(-2, 3, (2, *shape))
    return (parts[0] + (1j * parts[1] if kind.startswith("c") else 0)).astype(kind)


def calls(kind: str) -> dict[str, Call]:
    """A call for each kernel, by the kernel's name. The pieces of a scan have 8 steps, and 4
    pieces are in a block of 32 columns; Cauchy sums have tiles of 32; selective scans tiles of 16
    steps, in blocks of 8 states and 16 rows."""
    real = "float32" if kind in ("float32", "complex64") else "float64"
    a, b, dx = drawn(kind, 37, 35), drawn(kind, 2, 37, 35), drawn(kind, 2, 37, 35)
    v, w, z = drawn(kind, 2, 1, 35), drawn(kind, 35) + 8, drawn(kind, 3, 19) - 8
    v_few, w_few, z_many = v[..., :19], w[:19], drawn(kind, 3, 35) - 8
    u, dt, A = drawn(kind, 3, 19), np.abs(drawn(real, 3, 19)), drawn(kind, 3, 7)
    B, C = drawn(kind, 19, 7), drawn(kind, 2, 1, 19, 7)
    dk, dk_many, back = drawn(kind, 2, 3, 19), drawn(kind, 2, 3, 35), cauchy.cauchy_kernel_vjp
    return {
        "linear_scan_forward": Call(scan.linear_scan, (a / 2, b)),
        "linear_scan_adjoint": Call(scan.linear_scan_vjp, (dx, a / 2, b)),
        "cauchy_sums": Call(cauchy.cauchy_kernel, (v, w, z)),
        "cauchy_node_gradients": Call(back, (dk, v, w, z)),
        "cauchy_pole_gradients": Call(back, (dk_many, v_few, w_few, z_many)),
        "selective_scan_forward": Call(selective_scan.selective_scan, (u, dt / 4, A / 4, B, C)),
    }


@contextmanager
def edited(monkeypatch, kernel: str, edit: Callable[[str], str]):
    """A planted bug: the source of one kernel, or of a function that it calls, is changed."""
    right, changed = simulator.simulate, []

    def noted(source: str) -> str:
        after = edit(source)
        changed.append(after != source)
        return after

    def wrong(function, grid, block, arguments, *, name):
        change = {"edit": noted} if name == kernel else {}
        right(function, grid, block, arguments, name=name, **change)

    with monkeypatch.context() as patch:
        patch.setattr(simulator, "simulate", wrong)
        yield
    assert any(changed), f"nothing was changed in {kernel}"


def replaced(old: str, new: str) -> Callable[[str], str]:
    """An edit."""
    return lambda source: source.replace(old, new)


def without_barrier(number: int, source: str) -> str:
    """This source without the barrier of this number, counted from 0."""
    parts = source.split("cuda.syncthreads()")
    if len(parts) <= number + 1:
        return source
    ends = parts[: number + 1], parts[number + 1 :]
    return "pass".join("cuda.syncthreads()".join(end) for end in ends)


def missing(number: int) -> Callable[[str], str]:
    """An edit that removes one barrier."""
    return partial(without_barrier, number)
