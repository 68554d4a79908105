"""`python tests/gpu/launching.py`: a launch or more of every kernel, small, for compute-sanitizer.
With a number: a kernel with that planted bug of planted/table.cuh, which it must report.

Every mirror and gradient is called once at small ragged sizes, the scan also where time is cut
into pieces, DPLR at each rank that has a kernel. With REFSSM_GPU=host the same runs on the host
build. A kernel that nothing launched is an error, so that none goes unchecked.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(Path(__file__).parent)]

from gpu.gate.collected import kernels  # noqa: E402
from on_target import given  # noqa: E402 (its folder is on the path now)

from refssm.bench.work.inputs import case_of, drawn  # noqa: E402
from refssm.bench.work.sizes import of_length  # noqa: E402
from refssm.catalog import OPERATORS  # noqa: E402
from refssm.conformance.cases.case import Case, ordinary_case  # noqa: E402
from refssm.conformance.checks.checks import types_of  # noqa: E402
from refssm.dplr import DPLR_KERNEL_ALIASED  # noqa: E402
from refssm.scan import LINEAR_SCAN  # noqa: E402
from refssm.selective_scan import SELECTIVE_SCAN  # noqa: E402
from refssm_gpu._launching.kernel import (  # noqa: E402
    inlined,
    on_host,
    replaced,
    target,
)

SIZES = (37, 5, 7, 3)  # of core dimensions: no multiple of a tile
RANKS = {DPLR_KERNEL_ALIASED: (1, 2)}
# steps of one row: so few rows that time is cut into pieces
LONG = {LINEAR_SCAN: 2**16, SELECTIVE_SCAN: 2**12}


def ragged(op, dtype) -> list[Case]:
    """Small cases: one at SIZES, or one for each rank that has kernels of its own."""
    ranks = RANKS.get(op, (1,))
    return [ordinary_case(op, dtype, SIZES, between={"r": (rank, rank)}) for rank in ranks]


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
        for case in ragged(op, types_of(op)[0]):
            call(op, case.arrays, case.statics)
        if op in LONG:
            size = of_length(op, LONG[op])
            call(op, drawn(op, size), case_of(op, size).statics)


def unlaunched(operators: Iterable) -> tuple[int, list[str]]:
    """How many launches there were, and the kernels without one."""
    counting: Any = Counting(target())
    with replaced(counting):
        calls(operators)
    missed = [k for k in kernels() if (k.source, k.name) not in counting.seen]
    return counting.launches, [f"{kernel.source}: {kernel.name}" for kernel in missed]


def planted_text(number: int) -> str:
    """A small scan with a planted bug, as CuPy gets it."""
    text = (Path(__file__).parent / "planted" / "table.cuh").read_text(encoding="utf-8")
    header = '#include "common/number.cuh"\n'
    assert header in text
    return f"#define PLANTED {number}\n{text.replace(header, inlined('common/number.cuh'))}"


def launch_planted(number: int) -> None:
    """Launch it once on the card."""
    import cupy  # pyright: ignore[reportMissingImports]

    name = "chunked_scan<float>"
    module = cupy.RawModule(
        code=planted_text(number), options=("-std=c++17",), name_expressions=(name,)
    )
    b, x = (cupy.zeros((3, 300), cupy.float32) for _ in range(2))
    module.get_function(name)((3,), (128,), (b, x, np.int64(300)))
    cupy.cuda.Device().synchronize()


def main(arguments: list[str]) -> int:
    """Print what was launched; 1 if a kernel was not."""
    if not on_host():
        import cupy  # pyright: ignore[reportMissingImports]

        # no pool: it has room behind an array, in which an overrun would go unseen
        cupy.cuda.set_allocator(None)
    if arguments:
        launch_planted(int(arguments[0]))
        return 0
    launches, missed = unlaunched(op for op in OPERATORS if "gpu" not in op.lacks)
    print(f"{launches} launches of {len(kernels()) - len(missed)} kernels")  # noqa: T201
    for name in missed:
        print(f"never launched: {name}")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
