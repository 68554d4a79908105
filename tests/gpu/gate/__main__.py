"""`PYTHONPATH=tests python -m gpu.gate`: compile every kernel for real cards; what each needs.

Columns: registers a thread, static shared memory in bytes, bytes that a thread has under way, and
how many warps of 64 a multiprocessor then holds. Arguments name families or kernels, `--help` says
more. The exit code is 1 if a kernel is refused, 2 if NVRTC is missing or a name is unknown.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from gpu.gate.collected import kernels
from gpu.gate.compiled import ARCHITECTURES, Compiled, compiled
from gpu.gate.nvrtc import NoCompiler, version
from gpu.gate.occupancy import CARDS, occupancy
from gpu.gate.refusals import refusals
from joblib import Parallel, cpu_count, delayed
from rich.console import Console
from rich.progress import track

from refssm_gpu._launching.kernel import Kernel

HEADS = ("instance", "registers", "shared", "under way", "warps of 64")


def _cells(kernel: Kernel, made: Compiled) -> tuple[str, ...]:
    card = next(card for card in CARDS if card.architecture == made.architecture)
    held = occupancy(card, made.registers, kernel.block, made.shared)
    numbers = (made.registers, made.shared, made.in_flight, held.warps)
    return (made.expression, *map(str, numbers))


def _lines(wanted: Sequence[Kernel], architecture: str) -> list[str]:
    """The table of one architecture."""
    rows = [HEADS]
    for kernel in wanted:
        rows += [_cells(kernel, made) for made in compiled(kernel, architecture).instances]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def main(names: Sequence[str] = ()) -> int:
    """Print the tables and what is refused, of all kernels or of these families and kernels."""
    wanted = [k for k in kernels() if not names or {_family(k), k.name} & set(names)]
    unknown = set(names) - {name for k in wanted for name in (_family(k), k.name)}
    try:
        which = version()
        if unknown:
            raise LookupError(_unknown(min(unknown)))
    except (NoCompiler, LookupError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    pairs = [(kernel, arch) for arch in ARCHITECTURES for kernel in wanted]
    pairs.sort(key=lambda pair: -len(pair[0].instances))  # the longest first
    found = _refusals(pairs, which)
    for arch in ARCHITECTURES:
        print(f"{arch}, NVRTC {which}", *_lines(wanted, arch), "", sep="\n")  # noqa: T201
    refused = [f"refused: {why}" for each in found for why in each]
    print(*refused or ["nothing is refused"], sep="\n")  # noqa: T201
    return 1 if refused else 0


def _family(kernel: Kernel) -> str:
    """The folder of a kernel: "scan"."""
    return Path(kernel.source).parent.name


def _unknown(name: str) -> str:
    families = ", ".join(sorted({_family(kernel) for kernel in kernels()}))
    return f"no family or kernel {name!r}; families: {families}"


def _refusals(pairs: Sequence[tuple[Kernel, str]], which: str) -> list[list[str]]:
    """What is refused of each, compiled on all cores, with progress on a terminal."""
    count = len({kernel for kernel, _ in pairs})
    kernels_ = "kernel" if count == 1 else "kernels"
    head = f"compiling {count} {kernels_} for {' and '.join(ARCHITECTURES)} with NVRTC {which}"
    print(f"{head}; what was compiled before is read from disk", file=sys.stderr)  # noqa: T201
    made = Parallel(cpu_count(), return_as="generator")(delayed(refusals)(*p) for p in pairs)
    # not Console.is_terminal: with FORCE_COLOR, rich treats a pipe as a terminal
    bar = {"console": Console(stderr=True), "disable": not sys.stderr.isatty(), "transient": True}
    return [each or [] for each in track(made, "compiling kernels", len(pairs), **bar)]


Names = Annotated[
    list[str] | None,
    typer.Argument(help="Families (scan, ssd) or kernels (linear_scan); without any, all."),
]
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def command(names: Names = None) -> None:
    """Compile kernels with NVRTC for real cards; print what each instance needs.

    Exit code 1 if a kernel is refused, 2 if NVRTC is missing or a name is unknown.
    """
    raise typer.Exit(main(names or ()))


if __name__ == "__main__":
    app(prog_name="PYTHONPATH=tests python -m gpu.gate")
