"""`refssm cases`: the judge for programs in any language, through folders of .npy files."""

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from refssm.command import options as o
from refssm.command import spoken
from refssm.command.saying import CommandGroup
from refssm.command.spoken import ProgressBar

FAILED, NOTHING = 1, 5

app = typer.Typer(
    cls=CommandGroup,
    help="Judge programs in any language: a case is a folder of .npy files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Operators = Annotated[
    list[str] | None, typer.Option("--operator", help="Only this operator; repeatable.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of cases.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing folder of cases.")]
Vjp = Annotated[bool, typer.Option("--vjp", help="Also write cases of the gradient.")]
Names = Annotated[
    list[str] | None, typer.Option("--case", help="Judge only this case; repeatable.")
]


@app.command("write")
def write_cases(
    folder: Folder,
    operator: Operators = None,
    check: o.CheckName = None,
    dtype: o.Dtype = None,
    profile: o.ProfileName = "default",
    seed: o.Seed = 0,
    vjp: Vjp = False,
    where: o.WhereText = None,
    layout: o.AxesText = "",
    ftz: o.Ftz = False,
    force: Force = False,
) -> None:
    """Write cases (inputs, true values, allowed errors); your program adds its outputs."""
    from refssm.command.checked import settings as checked_settings
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.cases.ranges import parse
    from refssm.conformance.exchange.writing import Wanted, Writer
    from refssm.conformance.judging.certificate import refuse_if_wrong
    from refssm.conformance.usage_error import UsageError

    if not operator:
        raise UsageError(
            "no operator is given: use --operator NAME; `refssm list` prints the names"
        )
    if layout and len(operator) > 1:
        raise UsageError("--layout is about one operator: give only one")
    ops = [operator_named(name) for name in operator]
    settings = checked_settings("", dtype, check, seed, profile)
    settings = replace(settings, where=parse(where or (), ops), folder=None)
    wanted = Wanted(tuple(operator), settings, vjp, bool(ftz), layout)
    wanted.offers()
    refuse_if_wrong()
    with _whole(folder, force) as partial, ProgressBar() as bar:
        writer = Writer(partial, wanted)
        writer.write(bar.tick)
    run = f'refssm cases judge {folder} --exec "./prog {{case}}"'
    typer.echo(f"{folder}: {len(writer.cases)} cases for {len(writer.judged)} checks; next: {run}")


@app.command("judge")
def judge_cases(
    folder: Folder,
    exec_: o.Exec = "",
    timeout: o.Timeout = 60.0,
    operator: Operators = None,
    check: o.CheckName = None,
    case: Names = None,
    json: o.Json = False,
    verbose: o.Verbose = False,
    quiet: o.Quiet = False,
) -> int:
    """Grade the outputs in a folder of cases; with --exec, first run a program on each case."""
    from refssm.conformance.exchange import judging
    from refssm.conformance.exchange.manifest import load
    from refssm.conformance.exchange.program import Runner
    from refssm.conformance.judging.certificate import refuse_if_wrong
    from refssm.conformance.report import lines
    from refssm.conformance.running.settings import Session, Settings

    results, voice = [], spoken.of(verbose, quiet, json)
    runner = Runner(exec_, timeout) if exec_ else None
    cases = load(folder)
    wanted = judging.chosen(cases, operator or (), check or (), case or ())
    refuse_if_wrong()
    head = cases.head
    settled = {"seed": head["seed"], "profile": head["profile"]}
    asked = Settings(**settled, shrink=False, folder=None)
    with ProgressBar() as bar:
        report = spoken.Report(voice, bar)
        with report.ending(results, **settled):
            ran = judging.run_all(cases, wanted, runner, report.tick) if runner else {}
            answers = judging.Answers(cases, ran)
            written = f"written by refssm {head['refssm']}" + f", ran {exec_}" * bool(exec_)
            found = answers.found
            report.head(lines.header(str(folder), head["profile"], head["seed"], found, written))
            session = Session(answers, str(folder), asked)  # pyright: ignore[reportArgumentType]
            session.tick = report.tick
            for result in judging.judge(session, cases, wanted):
                results.append(result)
                report.result(result, found)
    if any(r.failed for r in results):
        return FAILED
    return 0 if any(r.verdict == "pass" for r in results) else NOTHING


@contextmanager
def _whole(folder: Path, force: bool):
    """A temporary folder, renamed to `folder` at the end in place of an older one of ours."""
    from refssm.conformance.exchange.manifest import NAME
    from refssm.conformance.usage_error import UsageError

    old = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if old and not (folder / NAME).is_file():
        raise UsageError(f"{folder} exists and is not a folder of cases: choose another name")
    if old and not force:
        raise UsageError(f"{folder} already has cases; --force overwrites them")
    try:
        place = folder.absolute().parent
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=place) as around:
            partial = Path(around) / "partial"
            partial.mkdir()
            yield partial
            if old:
                folder.rename(Path(around) / "old")
            elif folder.exists():
                folder.rmdir()
            shutil.move(partial, folder)
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror or error}") from None
