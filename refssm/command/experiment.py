"""`refssm experiment`: experiments on the theory of Hankel operators, as a table and a picture."""

import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from refssm.command.plot import FORMATS
from refssm.command.saying import CommandGroup

app = typer.Typer(
    cls=CommandGroup,
    help="Run an experiment on Hankel operators and HOPE: print a table, draw a PNG or SVG.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Seed = Annotated[int, typer.Option(min=0, help="The seed of the random numbers.")]
Quick = Annotated[bool, typer.Option("--quick", help="Use small sizes: a few seconds.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The picture's file; else EXPERIMENT.png.")
]


EXPERIMENTS = {
    "hankel-rank": "Count Hankel singular values against n. Random systems and HOPE.",
    "perturbation": "Move parameters, measure transfer functions. Compared with the bounds.",
    "memory": "Compare impulse responses. How long LegS, S4D, S5, HOPE remember, and aliasing.",
    "initialisation": "Draw Hankel singular values at the start. LegS, S4D, random poles, HOPE.",
    "digits": "Train every layer on scanned digits. Loss and accuracy, three seeds.",
    "convergence": "Run gradient descent to a target. In HOPE's parameters and in diagonal ones.",
}


def _command(name: str, told: str) -> None:
    """Register one subcommand; the experiment's module has its name with _ instead of -."""

    @app.command(name, help=told)
    def run(seed: Seed = 0, quick: Quick = False, output: Output = None) -> None:
        _shown(name.replace("-", "_"), seed, quick, output)


for _name, _told_of in EXPERIMENTS.items():
    _command(_name, _told_of)


def _shown(name: str, seed: int, quick: bool, output: Path | None) -> None:
    """Measure, print and draw; UsageError before the measurement if the picture is impossible."""
    from refssm.conformance.usage_error import UsageError

    output = output or Path(f"{name}.png")
    if find_spec("matplotlib") is None:
        raise UsageError("experiments need matplotlib: pip install matplotlib")
    if output.suffix not in FORMATS:
        raise UsageError(f"{output}: wanted a file name that ends in {' or '.join(FORMATS)}")
    if not output.parent.is_dir():
        raise UsageError(f"{output}: No such file or directory")
    experiment, started = import_module(f"refssm.experiments.{name}"), time.perf_counter()
    result = experiment.measured(seed=seed, quick=quick, track=_track(name))
    for table in experiment.tables(result):
        typer.echo(f"{_told(table)}\n")
    try:
        experiment.draw(output, result)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(f"{output}   seed {seed}   {time.perf_counter() - started:.1f} s")


def _told(table) -> str:
    """The table as text. Columns are as wide as their contents, because a pipe has no width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown, wide = Table(box=box.SIMPLE), 3
    for cells in zip(table.columns, *table.rows, strict=True):
        numbers = any(cell[:1].isdigit() for cell in cells[1:])
        shown.add_column(cells[0], justify="right" if numbers else "left", no_wrap=True)
        wide += max(map(len, cells)) + 3
    for row in table.rows:
        shown.add_row(*row)
    console = Console(width=wide, highlight=False, markup=False, color_system=None)
    with console.capture() as told:
        console.print(shown)
    return "\n".join(
        [table.title, *(line.rstrip() for line in told.get().splitlines() if line.strip())]
    )


def _track(name: str) -> Callable[[Iterable], Iterable]:
    """A progress bar on a terminal; otherwise no change."""
    if not sys.stderr.isatty():
        return iter
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return lambda items: track(items, description=name, console=console, transient=True)
