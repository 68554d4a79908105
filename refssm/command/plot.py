"""`refssm plot`: the pictures of the gallery, as PNG or SVG files."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from refssm.command.saying import CommandGroup

FORMATS = (".png", ".svg")

app = typer.Typer(
    cls=CommandGroup,
    help="Draw HiPPO memories, bases, kernels, spectra and training runs, as PNG or SVG.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Measure = Annotated[str, typer.Option(help="legs, legt, lmu, lagt, fourier; for basis also chebt.")]
States = Annotated[int, typer.Option("--n", min=2, max=1024, help="The number of states.")]
Folders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER...", help="Folders of runs, TASK-LAYER-SEED.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The picture's file; else its name with .png.")
]


@app.command("memory")
def plot_memory(measure: Measure = "legs", n: States = 64, output: Output = None) -> None:
    """Draw a signal, its states, and the signal reconstructed from them."""
    _drawn("memory", output or Path(f"memory_{measure}.png"), measure=measure, n=n)


@app.command("basis")
def plot_basis(measure: Measure = "legs", n: States = 64, output: Output = None) -> None:
    """Draw the basis functions on which the states project the past."""
    _drawn("basis", output or Path(f"basis_{measure}.png"), measure=measure, n=n)


@app.command("kernels")
def plot_kernels(n: States = 64, output: Output = None) -> None:
    """Draw the initial kernels of LegS, S4D-Lin, S4D-Inv and DSS."""
    _drawn("kernels", output or Path("kernels.png"), n=n)


@app.command("spectrum")
def plot_spectrum(n: States = 64, output: Output = None) -> None:
    """Draw the eigenvalues of the normal parts of HiPPO matrices."""
    _drawn("spectrum", output or Path("spectrum.png"), n=n)


@app.command("training")
def plot_training(folders: Folders, output: Output = None) -> None:
    """Draw the tests of runs of `refssm train`: one curve for each layer, a band over its seeds."""
    from refssm.conformance.usage_error import UsageError

    output = output or Path("training.png")
    check_picture(output)
    if find_spec("safetensors") is None:
        raise UsageError("plot training needs safetensors: pip install safetensors")
    from refssm.gallery import training as gallery
    from refssm.training import folders as stored
    from refssm.training.tasks import TrainingError

    try:
        runs = stored.by_settings([stored.read(folder) for folder in folders])
        gallery.draw(output, gallery.of_groups(runs, stored.curve))
    except TrainingError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(str(output))


def check_picture(output: Path) -> None:
    """UsageError if there is no matplotlib, or if the file is of another format."""
    from refssm.conformance.usage_error import UsageError

    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install matplotlib")
    if output.suffix not in FORMATS:
        raise UsageError(f"{output}: wanted a file name that ends in {' or '.join(FORMATS)}")


def _drawn(picture: str, output: Path, **settings) -> None:
    """Draw a picture; UsageError with one sentence if that is impossible."""
    from refssm.conformance.usage_error import UsageError

    check_picture(output)
    gallery = import_module(f"refssm.gallery.{picture}")
    measure = settings.get("measure")
    if measure is not None and measure not in gallery.MEASURES:
        raise UsageError(
            f"unknown measure {measure!r}; wanted one of {', '.join(gallery.MEASURES)}"
        )
    if measure == "fourier" or picture == "spectrum":
        settings["n"] += settings["n"] % 2  # waves form pairs
    try:
        gallery.draw(output, **settings)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(str(output))
