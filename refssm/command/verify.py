"""`refssm verify`: judge the implementations in a file, a module, or a known library."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

FAILED, NOTHING = 1, 5


def verify(
    targets: Annotated[
        list[str] | None,
        typer.Argument(help="file.py, file.py::function, module or module:function."),
    ] = None,
    as_: Annotated[str, typer.Option("--as", help="The operator that the function is.")] = "",
    inputs: Annotated[
        Path | None, typer.Option(help="Judge on your own arrays: .npz, by argument name.")
    ] = None,
    dtype: Annotated[
        list[str] | None, typer.Option(help="Judge in this type only; may be repeated.")
    ] = None,
    check: Annotated[
        list[str] | None, typer.Option(help="Run this check only; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all cases.")] = 0,
    profile: Annotated[str, typer.Option(help="quick, default or thorough.")] = "default",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=1e6, help="Seconds a call may take; the first five times that."),
    ] = 60.0,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Without a child process, for debuggers.")
    ] = False,
    subject: Annotated[
        list[str] | None, typer.Option(help="Judge a known library: scipy, jit.")
    ] = None,
) -> int:
    """Say whether an implementation is right, how accurate, and if wrong where and why."""
    from refssm.conformance.certify import refuse_if_wrong
    from refssm.conformance.report import lines, records

    settings = _settings(as_, dtype, check, seed, profile)
    places = _targets(targets, subject, as_)
    refuse_if_wrong()
    out = lines.console(sys.stdout)
    started, results = time.perf_counter(), []
    for target in places:
        with _worker(target, as_ or None, timeout, in_process) as worker:
            if not json:
                narrowed = f"narrowed to {inputs}" if inputs else ""
                out.print(lines.header(target, profile, seed, narrowed))
            for result in _results(worker, target, inputs, settings, quiet=json):
                results.append(result)
                if not json:
                    lines.show(result, out)
        if not json:
            out.print()
    if json:
        typer.echo(records.document(results, seed, profile))
    else:
        out.print(lines.summary(results, time.perf_counter() - started))
    if any(r.failed for r in results):
        return FAILED
    return 0 if any(r.verdict == "pass" for r in results) else NOTHING


def _settings(as_, dtype, check, seed, profile) -> dict:
    """Checked options, as a session takes them."""
    from refssm.conformance.checks import NAMES, PROFILES
    from refssm.conformance.plugin import UsageError, operator_named

    if as_:
        operator_named(as_)
    if profile not in PROFILES:
        raise UsageError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    for name in check or ():
        if name not in NAMES:
            raise UsageError(f"no check {name!r}; there are {', '.join(NAMES)}")
    known = ("float32", "float64", "complex64", "complex128")
    for name in dtype or ():
        if name not in known:
            raise UsageError(f"no type {name!r} is judged; there are {', '.join(known)}")
    return {
        "profile": profile,
        "seed": seed,
        "types": tuple(dtype or ()),
        "only_checks": tuple(check or ()),
    }


def _targets(targets, subject, as_) -> list[str]:
    from refssm.conformance import subjects
    from refssm.conformance.plugin import UsageError

    for name in subject or ():
        if name not in subjects.NAMES:
            raise UsageError(f"no subject {name!r}; there are {', '.join(subjects.NAMES)}")
    places = [*(targets or ()), *(t for name in subject or () for t in subjects.target(name))]
    if not places:
        raise UsageError("nothing to judge: name a file, a module or --subject")
    if as_ and len(places) > 1:
        raise UsageError("--as says what one function is; name one target")
    return places


def _worker(target, name, timeout, in_process):
    from refssm.conformance.plugin import find
    from refssm.conformance.session import FOLDER
    from refssm.conformance.worker import InProcess, Worker

    if in_process:
        return InProcess(find(target, name), FOLDER)
    return Worker(target, name, timeout)


def _results(worker, target, inputs, settings, quiet):
    """Results as they come, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from refssm.conformance.inputs import judge_inputs
    from refssm.conformance.session import Session

    session = Session(worker, target, **settings)
    if inputs is not None:
        yield from judge_inputs(session, inputs)
        return
    if quiet or not sys.stderr.isatty():
        yield from session.run()
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")

        def tick(check, done, count):
            bar.update(task, description=check, completed=done, total=count)

        session.tick = tick
        yield from session.run()
