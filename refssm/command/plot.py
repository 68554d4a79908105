"""`refssm plot`: the pictures of the gallery, as PNG or SVG files."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

FORMATS = (".png", ".svg")

app = typer.Typer(
    help="Draw what memories are and do, as PNG or SVG.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Measure = Annotated[str, typer.Option(help="legs, legt, lmu, lagt, fourier; for basis also chebt.")]
States = Annotated[int, typer.Option("--n", min=2, max=1024, help="How many states.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file; the picture's name with .png.")
]


@app.command("memory")
def plot_memory(measure: Measure = "legs", n: States = 64, output: Output = None) -> None:
    """Draw what the states hold of a signal, and what comes back from them."""
    _drawn("memory", output or Path(f"memory_{measure}.png"), measure=measure, n=n)


@app.command("basis")
def plot_basis(measure: Measure = "legs", n: States = 64, output: Output = None) -> None:
    """Draw the functions that the states take the past by."""
    _drawn("basis", output or Path(f"basis_{measure}.png"), measure=measure, n=n)


@app.command("kernels")
def plot_kernels(n: States = 64, output: Output = None) -> None:
    """Draw the kernels that LegS, S4D-Lin, S4D-Inv and DSS start from."""
    _drawn("kernels", output or Path("kernels.png"), n=n)


@app.command("spectrum")
def plot_spectrum(n: States = 64, output: Output = None) -> None:
    """Draw the poles of the normal parts of HiPPO's matrices."""
    _drawn("spectrum", output or Path("spectrum.png"), n=n)


def _drawn(picture: str, output: Path, **settings) -> None:
    """Draw a picture; UsageError with one sentence if that is impossible."""
    from refssm.conformance.usage_error import UsageError

    if find_spec("matplotlib") is None:
        raise UsageError("pictures need matplotlib: pip install 'refssm[report]'")
    if output.suffix not in FORMATS:
        raise UsageError(f"{output}: a picture is written as {' or '.join(FORMATS)}")
    gallery = import_module(f"refssm.gallery.{picture}")
    measure = settings.get("measure")
    if measure is not None and measure not in gallery.MEASURES:
        raise UsageError(
            f"no measure {measure!r} is drawn; there are {', '.join(gallery.MEASURES)}"
        )
    if measure == "fourier" or picture == "spectrum":
        settings["n"] += settings["n"] % 2  # waves form pairs
    try:
        gallery.draw(output, **settings)
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}") from None
    typer.echo(str(output))
