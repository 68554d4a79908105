"""`python -m refssm_gpu._gate`: compile every kernel for real cards; what each instance needs.

Columns: registers a thread, static shared memory in bytes, bytes that a thread has under way, and
how many warps of 64 a multiprocessor then holds. The exit code is 1 if a kernel is refused.
"""

import sys

from joblib import Parallel, cpu_count, delayed

from refssm_gpu._gate.compiled import ARCHITECTURES, Compiled, compiled
from refssm_gpu._gate.nvrtc import NoCompiler, version
from refssm_gpu._gate.occupancy import CARDS, occupancy
from refssm_gpu._gate.refusals import refusals
from refssm_gpu._launching.collected import kernels
from refssm_gpu._launching.kernel import Kernel

HEADS = ("instance", "registers", "shared", "under way", "warps of 64")


def _cells(kernel: Kernel, made: Compiled) -> tuple[str, ...]:
    card = next(card for card in CARDS if card.architecture == made.architecture)
    held = occupancy(card, made.registers, kernel.block, made.shared)
    numbers = (made.registers, made.shared, made.in_flight, held.warps)
    return (made.expression, *map(str, numbers))


def _lines(architecture: str) -> list[str]:
    """The table of one architecture."""
    rows = [HEADS]
    for kernel in kernels():
        rows += [_cells(kernel, made) for made in compiled(kernel, architecture).instances]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def main() -> int:
    """Print the tables and what is refused."""
    try:
        which = version()
    except NoCompiler as lack:
        print(lack, file=sys.stderr)  # noqa: T201
        return 2
    pairs = [(kernel, arch) for arch in ARCHITECTURES for kernel in kernels()]
    pairs.sort(key=lambda pair: -len(pair[0].instances))  # the longest first
    found = Parallel(cpu_count())(delayed(refusals)(*pair) for pair in pairs) or []
    for arch in ARCHITECTURES:
        print(f"{arch}, NVRTC {which}", *_lines(arch), "", sep="\n")  # noqa: T201
    told = [f"refused: {why}" for each in found for why in each or ()]
    print(*told or ["nothing is refused"], sep="\n")  # noqa: T201
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
