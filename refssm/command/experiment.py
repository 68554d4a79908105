"""`refssm experiment`: experiments on what papers say, as a table and a picture."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from refssm.command.plot import FORMATS
from refssm.command.saying import CommandGroup, say
from refssm.experiments.catalog import EXPERIMENTS, TRAINED, module_of

app = typer.Typer(
    cls=CommandGroup,
    help="Run an experiment on a claim of the theory or of a paper: a table, and a PNG or SVG.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Seed = Annotated[int, typer.Option(min=0, help="The seed of the random numbers.")]
Quick = Annotated[bool, typer.Option("--quick", help="Use small sizes: a few seconds.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The picture's file; else EXPERIMENT.png.")
]


Seeds = Annotated[int, typer.Option(min=1, help="Train with so many seeds, from --seed on.")]
Folder = Annotated[
    Path | None, typer.Option(help="Each model has a folder in it; else runs/EXPERIMENT.")
]
Workers = Annotated[int, typer.Option(min=1, help="Processes that share the models.")]
Dask = Annotated[str | None, typer.Option("--dask", help="Train on the Dask cluster here.")]


def _command(name: str, told: str) -> None:
    """Register one subcommand."""

    @app.command(name, help=told)
    def run(seed: Seed = 0, quick: Quick = False, output: Output = None) -> None:
        experiment = module_of(name)
        _shown(
            name,
            experiment,
            lambda: experiment.measured(seed=seed, quick=quick, track=_track(name)),
            output,
            f"seed {seed}",
        )


def _training(name: str, told: str) -> None:
    """Register one subcommand that trains models in folders."""

    @app.command(name, help=f"{told} What is trained stays, and is not trained again.")
    def run(
        seed: Seed = 0,
        seeds: Seeds = 3,
        quick: Quick = False,
        output: Output = None,
        folder: Folder = None,
        workers: Workers = 1,
        dask: Dask = None,
    ) -> None:
        own = folder or Path("runs") / (f"{name}-quick" if quick else name)
        experiment, chosen = module_of(name), range(seed, seed + seeds)
        _shown(
            name,
            experiment,
            lambda: _trained(name, experiment, own.resolve(), chosen, quick, workers, dask),
            output,
            f"seeds {seed} to {chosen[-1]}",
        )


def _trained(
    name: str, experiment: ModuleType, folder: Path, seeds: range, quick: bool, workers: int,
    dask: str | None,
):  # fmt: skip
    """What the models of an experiment say; UsageError if one cannot be trained or read."""
    from refssm.conformance.usage_error import UsageError
    from refssm.experiments.trained.trials import tried, with_seeds
    from refssm.training.loop import Diverged
    from refssm.training.tasks import TrainingError

    trials = with_seeds(experiment.trials(quick=quick), seeds)
    try:
        with _crew(workers, dask) as each:
            runs = tried(trials, folder, each=each, track=_track(name, len(trials)))
        return experiment.measured(runs)
    except (Diverged, TrainingError) as error:
        raise UsageError(f"{error}; another --folder begins anew") from None
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror}") from None
    except KeyboardInterrupt:
        say(f"{folder}: what is trained stays; the same command goes on")
        raise


for _name, _told_of in EXPERIMENTS.items():
    _command(_name, _told_of)
for _name, _told_of in TRAINED.items():
    _training(_name, _told_of)


@contextmanager
def _crew(workers: int, address: str | None) -> Iterator[Callable]:
    """How tasks are shared: in turn, among processes, or on a cluster."""
    from refssm.conformance.spreading.crew import local
    from refssm.conformance.spreading.processes import remote
    from refssm.conformance.usage_error import UsageError
    from refssm.experiments.digits import in_turn

    if workers > 1 and address is not None:
        raise UsageError("--workers and --dask: both say where to train; leave one out")
    if workers == 1 and address is None:
        yield in_turn
        return
    with remote(address) if address is not None else local(workers) as crew:
        yield crew.each


def _shown(
    name: str, experiment: ModuleType, measured: Callable, output: Path | None, seeds: str
) -> None:
    """Measure, print and draw; UsageError before the measurement if the picture is impossible."""
    from refssm.conformance.usage_error import UsageError

    output = output or Path(f"{name.replace('-', '_')}.png")
    if find_spec("matplotlib") is None:
        raise UsageError("experiments need matplotlib: pip install matplotlib")
    if output.suffix not in FORMATS:
        raise UsageError(f"{output}: wanted a file name that ends in {' or '.join(FORMATS)}")
    if not output.parent.is_dir():
        raise UsageError(f"{output}: No such file or directory")
    started = time.perf_counter()
    result = measured()
    for table in experiment.tables(result):
        typer.echo(f"{_told(table)}\n")
    if hasattr(experiment, "CLAIM"):
        typer.echo(f"claim: {experiment.CLAIM.told}")
        typer.echo("".join(f"{finding}\n" for finding in experiment.findings(result)))
    try:
        experiment.draw(output, result)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(f"{output}   {seeds}   {time.perf_counter() - started:.1f} s")


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


def _track(name: str, total: int | None = None) -> Callable[[Iterable], Iterable]:
    """A progress bar on a terminal; otherwise no change."""
    if not sys.stderr.isatty():
        return iter
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    how = {"description": name, "console": console, "transient": True}
    return lambda items: track(items, total=total, **how)
