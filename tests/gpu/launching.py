"""`python tests/gpu/launching.py`: a launch or more of every kernel, small, for compute-sanitizer.

Every mirror and gradient is called once at small ragged sizes, the scan also where time is cut
into pieces. With REFSSM_GPU=host the same runs on the host build. A kernel that nothing launched is
an error, so that none goes unchecked.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]

from on_target import given  # noqa: E402 (its folder is on the path now)

from refssm.catalog import OPERATORS  # noqa: E402
from refssm.conformance.cases.case import ordinary_case  # noqa: E402
from refssm.conformance.checks.checks import types_of  # noqa: E402
from refssm.scan import LINEAR_SCAN  # noqa: E402
from refssm_gpu._launching.collected import kernels  # noqa: E402
from refssm_gpu._launching.target import replaced, target  # noqa: E402

SIZES = (37, 5, 7, 3)  # of core dimensions: no multiple of a tile
LONG = 2**16  # steps of one row: so few rows that time is cut into pieces


class Counting:
    """Passes launches on and remembers the kernels."""

    def __init__(self, to):
        self.to, self.seen, self.launches = to, set(), 0
        self.array = to.array

    @property
    def multiprocessors(self):
        return self.to.multiprocessors

    def launch(self, kernel, instance, grid, arguments, shared):
        self.seen.add((kernel.source, kernel.name))
        self.launches += 1
        self.to.launch(kernel, instance, grid, arguments, shared)


def call(op, arrays, statics) -> None:
    """The mirror, and its gradient for cotangents of ones."""
    op.implementation("gpu")(*given(*arrays), **statics)
    if op.differentiable:
        shapes, kinds = op.output_shapes(*arrays, **statics), op.output_types(*arrays)
        ones = [np.ones(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        op.vjp("gpu")(*given(*ones, *arrays), **statics)


def calls(operators: Iterable) -> None:
    """All of them."""
    for op in operators:
        case = ordinary_case(op, types_of(op)[0], SIZES)
        call(op, case.arrays, case.statics)
        if op is LINEAR_SCAN:
            call(op, [np.full((LONG, 1), 0.5, np.float32)] * 2, {})


def unlaunched(operators: Iterable) -> tuple[int, list[str]]:
    """How many launches there were, and the kernels without one."""
    counting: Any = Counting(target())
    with replaced(counting):
        calls(operators)
    missed = [k for k in kernels() if (k.source, k.name) not in counting.seen]
    return counting.launches, [f"{kernel.source}: {kernel.name}" for kernel in missed]


def main() -> int:
    """Print what was launched; 1 if a kernel was not."""
    launches, missed = unlaunched(op for op in OPERATORS if "gpu" not in op.lacks)
    print(f"{launches} launches of {len(kernels()) - len(missed)} kernels")  # noqa: T201
    for name in missed:
        print(f"never launched: {name}")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
