"""`refssm vectors`: files of correctly rounded results: write them, judge by them, check them."""

from pathlib import Path
from typing import Annotated

import typer

from refssm.command import options as o
from refssm.command import spoken
from refssm.command.checked import check_options
from refssm.command.saying import CommandGroup, say
from refssm.command.spoken import ProgressBar
from refssm.command.verify import worker_of

app = typer.Typer(
    cls=CommandGroup,
    help="Golden vectors: inputs with correctly rounded outputs, chosen to show bugs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
FAILED, USAGE, NOTHING = 1, 4, 5

Folder = Annotated[
    Path, typer.Argument(help="The folder; it gets a file OPERATOR.json for each operator.")
]
Operators = Annotated[
    list[str] | None, typer.Option("--operator", help="A name from `refssm list`; repeatable.")
]
Count = Annotated[
    int, typer.Option(min=1, max=10000, help="The number of random cases of each type and length.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help='"json", or "onnx": a folder for each case, as in ONNX\'s backend tests, of operators '
        "that are LinearAttention or CausalConvWithState.",
    ),
]
Longest = Annotated[int, typer.Option(min=1, max=257, help="The longest length of a case.")]
Files = Annotated[list[Path], typer.Argument(help="Files, or folders of files.")]
One = Annotated[Path, typer.Argument(help="A file, or a folder of files.")]
Thorough = Annotated[
    bool, typer.Option("--thorough", help="Compute every number again, by both oracles.")
]


@app.command("write")
def write(
    folder: Folder,
    operator: Operators = None,
    seed: o.Seed = 0,
    count: Count = 24,
    longest: Longest = 65,
    format_: Format = "json",
) -> int:
    """Write a file for each operator; the same command writes the same bytes."""
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.usage_error import UsageError
    from refssm.conformance.vectors import document, making, onnx_cases

    if format_ not in ("json", "onnx"):
        raise UsageError(f"unknown format {format_!r}; wanted one of json, onnx")
    making.refuse_without_flint()
    asked, as_onnx = list(dict.fromkeys(operator or ())), format_ == "onnx"
    wanted = [operator_named(name) for name in asked]
    if as_onnx:
        onnx_cases.refuse_without_node(wanted)
    wanted = wanted or (onnx_cases.with_node() if as_onnx else making.enclosed())
    for op in wanted:
        making.refuse_without_enclosure(op)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None
    with ProgressBar() as bar:
        for done, op in enumerate(wanted):
            bar.tick(f"writing {op}", done, len(wanted))
            types = onnx_cases.TYPES if as_onnx else ()
            vectors = making.made(op, seed, count, longest, types)
            path = folder / (op.name if as_onnx else f"{op}.json")
            if as_onnx:
                onnx_cases.write(path, vectors)
            else:
                document.save(path, document.text_of(vectors))
            shown = sum(len(c.catches) for c in vectors.cases)
            bugs = len(making.planted(op, types))
            bar.hide()
            typer.echo(
                f"{path}   {len(vectors.cases)} cases   they show {shown} of {bugs} planted bugs"
            )
    return 0


@app.command("check")
def check(
    vectors: One,
    targets: Annotated[list[str], typer.Argument(help="file.py, file.py::function, module.")],
    as_: o.As = "",
    framework: o.Framework = "",
    device: o.Device = "",
    layout: o.AxesText = "",
    ftz: o.Ftz = False,
    json: o.Json = False,
    verbose: o.Verbose = False,
    quiet: o.Quiet = False,
    timeout: o.Timeout = 60.0,
    in_process: o.InThisProcess = False,
) -> int:
    """Judge implementations by stored vectors; no oracle runs."""
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.checks.checks import VECTORS
    from refssm.conformance.usage_error import UsageError
    from refssm.conformance.vectors import check as checking
    from refssm.conformance.vectors import reading

    if as_:
        operator_named(as_)
        if len(targets) > 1:
            raise UsageError("--as is about one function: give only one target")
    check_options(framework, config=None, no_config=False)
    told = {"framework": framework, "device": device, "layout": layout, "ftz": ftz}
    told = {name: value for name, value in told.items() if value}
    how = {"name": as_ or None, "timeout": timeout, "in_process": in_process}
    voice, results = spoken.of(verbose, quiet, json), []
    given = [reading.read(path) for path in reading.files([vectors])]
    with ProgressBar() as bar:
        report = spoken.Report(voice, bar)
        cases = sum(len(v.cases) for v in given)
        with report.ending(results, seed=0, profile=VECTORS.name):
            for target in targets:
                with worker_of(target, told, **how) as worker:
                    told_of = f"{cases} vectors of {len(given)} operators in {vectors}"
                    report.head(f"{target}   {told_of}")
                    for result in checking.judged(worker, target, given):
                        results.append(result)
                        report.result(result, worker.found)
    if any(r.failed for r in results):
        return FAILED
    return 0 if any(r.verdict == "pass" for r in results) else NOTHING


@app.command("lint")
def lint(paths: Files, thorough: Thorough = False) -> int:
    """Check files: format, numbers, bounds, checksum; print a line for each file that is wrong."""
    from refssm.conformance.usage_error import UsageError
    from refssm.conformance.vectors import check as linting
    from refssm.conformance.vectors import making, reading

    if thorough:
        making.refuse_without_flint()
    wrong = 0
    files, again = reading.files(paths), ", every number computed again" if thorough else ""
    with ProgressBar() as bar:
        for done, path in enumerate(files):
            bar.tick(f"reading {path}", done, len(files))
            try:
                vectors = linting.sound(path, thorough)
            except UsageError as error:
                bar.hide()
                say(str(error))
                wrong += 1
                continue
            bar.hide()
            typer.echo(f"ok   {path}   {len(vectors.cases)} cases of {vectors.op}{again}")
    return USAGE if wrong else 0
