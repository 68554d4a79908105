"""The options of `refssm verify`, by name: what to judge, how to call it, how much to print."""

from pathlib import Path
from typing import Annotated

import typer

# the name of each option in [tool.refssm]; other keys are not a default of one option
KEYS = {
    "profile": "profile",
    "seed": "seed",
    "dtype": "dtypes",
    "check": "checks",
    "timeout": "timeout",
    "known": "known-failures",
}


def _configured(ctx: typer.Context, path: Path | None) -> Path | None:
    """Read defaults from [tool.refssm] of the given file, or of the nearest pyproject.toml."""
    from refssm.conformance.project.pyproject import Config, named, nearest

    if path is not None:
        ctx.obj = named(path)
    else:
        ctx.obj = Config() if ctx.params.get("no_config") else nearest(Path.cwd())
    ctx.default_map = {
        name: ctx.obj.get(key) for name, key in KEYS.items() if key in ctx.obj.values
    }
    return path


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,  # parsed before the options for which it has defaults
        callback=_configured,
        help="Take [tool.refssm] from this file; else from the nearest pyproject.toml.",
    ),
]
NoConfig = Annotated[
    bool, typer.Option("--no-config", is_eager=True, help="Read no pyproject.toml.")
]
Targets = Annotated[
    list[str] | None, typer.Argument(help="file.py, file.py::function, module or module:function.")
]
As = Annotated[str, typer.Option("--as", help="The operator that the function is.")]
Subject = Annotated[
    list[str] | None, typer.Option(help="Judge a known library: scipy, jax, torch, jit, …")
]
Against = Annotated[str, typer.Option(help="An older implementation: both on the same cases.")]
Inputs = Annotated[
    Path | None, typer.Option(help="Judge on your own arrays: .npz, by argument name.")
]
Output = Annotated[
    Path | None, typer.Option(help="Grade this result (.npy, .npz) of --inputs: no code runs.")
]
WhereText = Annotated[
    list[str] | None,
    typer.Option(help="Judge only where NAME=LOW..HIGH, an argument or a size; repeatable."),
]
Exec = Annotated[
    str, typer.Option("--exec", help='Judge a program: "./prog {case}" gets the folder of a case.')
]

Framework = Annotated[str, typer.Option(help="Whose arrays it takes: numpy, torch, jax, cupy.")]
Device = Annotated[str, typer.Option(help='Where the arrays live: "cuda", "gpu:1".')]
AxesText = Annotated[str, typer.Option(help='Where its axes stand: "b n l, b n l -> b n l".')]
Vjp = Annotated[
    bool | None, typer.Option("--vjp/--no-vjp", help="Judge the framework's own gradient too.")
]
Ftz = Annotated[
    bool | None, typer.Option("--ftz/--no-ftz", help="Subnormal numbers may be flushed to zero.")
]
Timeout = Annotated[
    float,
    typer.Option(min=0.1, max=1e6, help="Seconds a call may take; the first five times that."),
]
InThisProcess = Annotated[
    bool, typer.Option("--in-process", help="Without a child process, for debuggers.")
]

Dtype = Annotated[list[str] | None, typer.Option(help="Judge in this type only; repeatable.")]
CheckName = Annotated[list[str] | None, typer.Option(help="Run this check only; repeatable.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of all cases.")]
ProfileName = Annotated[str, typer.Option(help="quick, default or thorough.")]
KnownFile = Annotated[
    Path | None,
    typer.Option("--known", help="A list of known failures, with reasons and days when they end."),
]
WriteKnown = Annotated[
    Path | None, typer.Option(help="Write the failures as such a list, to fill in reasons.")
]
Cases = Annotated[
    int | None,
    typer.Option(min=1, max=10**7, help="So many cases of each check, in place of the profile's."),
]
Workers = Annotated[int, typer.Option(min=-1, max=1024, help="Processes; -1: one for each core.")]
Dask = Annotated[str | None, typer.Option(help="Judge on the cluster with this scheduler.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep a record; go on where a run was killed.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[
    Path | None, typer.Option(help="Write a page with pictures of the failures to this file.")
]
