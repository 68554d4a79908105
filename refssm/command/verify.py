"""`refssm verify`: judge the implementations in a file, a module, or a known library."""

import shlex
import sys
import time

import typer

from refssm.command import options as o

FAILED, NOTHING = 1, 5


def verify(
    context: typer.Context,
    targets: o.Targets = None,
    as_: o.As = "",
    subject: o.Subject = None,
    against: o.Against = "",
    inputs: o.Inputs = None,
    output: o.Output = None,
    where: o.WhereText = None,
    framework: o.Framework = "",
    device: o.Device = "",
    layout: o.AxesText = "",
    vjp: o.Vjp = False,
    ftz: o.Ftz = False,
    dtype: o.Dtype = None,
    check: o.CheckName = None,
    seed: o.Seed = 0,
    profile: o.ProfileName = "default",
    cases: o.Cases = None,
    workers: o.Workers = 1,
    dask: o.Dask = None,
    resume: o.Resume = False,
    json: o.Json = False,
    timeout: o.Timeout = 60.0,
    in_process: o.InThisProcess = False,
) -> int:
    """Say whether an implementation is right, how accurate, and if wrong where and why."""
    from refssm.conformance.certify import refuse_if_wrong
    from refssm.conformance.report import lines, records

    settings = _settings(as_, dtype, check, seed, profile, inputs) | {"cases": cases or 0}
    told, started = _told(framework, device, layout, vjp, ftz), time.perf_counter()
    out, results = lines.console(sys.stdout), []
    counted = f"{profile}, {cases} cases a check" if cases else profile
    places, absent = _targets(targets, subject, as_, inputs, output)
    for sentence in absent if not json else ():
        out.print(sentence)
    spread = context.with_resource(_spread(workers, dask, resume, in_process, inputs))
    settings |= {"spread": spread, "options": _again(as_, told, where, cases)}
    refuse_if_wrong()
    for target in places:
        with (
            _worker(target, as_ or None, timeout, in_process, told, output) as worker,
            _older(against, as_ or None, timeout, in_process, told) as older,
        ):
            ranges = _where(where, worker)
            if not json:
                narrowed = [f"narrowed to {r}" for r in (ranges, inputs) if r]
                out.print(lines.header(target, counted, seed, worker.found, ", ".join(narrowed)))
            more = {"where": ranges, "against": older, "older": against}
            for result in _results(worker, target, inputs, settings | more, quiet=json):
                results.append(result)
                if not json:
                    lines.show(result, out, lines.width(worker.found))
        if not json:
            out.print()
    spread.discard()
    if json:
        typer.echo(records.document(results, seed, profile))
    else:
        out.print(lines.summary(results, time.perf_counter() - started))
    return _exit_code(results)


def _exit_code(results) -> int:
    if any(r.failed for r in results):
        return FAILED
    return 0 if any(r.verdict == "pass" for r in results) else NOTHING


def _told(framework, device, layout, vjp, ftz) -> dict:
    """What to take in place of what authors declared."""
    from refssm.conformance.plugin import UsageError
    from refssm.testing import FRAMEWORKS

    if framework and framework not in FRAMEWORKS:
        raise UsageError(f"no framework {framework!r} is known; there are {', '.join(FRAMEWORKS)}")
    told = {"framework": framework, "device": device, "layout": layout, "vjp": vjp, "ftz": ftz}
    return {name: value for name, value in told.items() if value}


def _spread(workers, dask, resume, in_process, inputs):
    """How the work is spread; the processes for it, once it is entered."""
    from refssm.conformance.plugin import UsageError
    from refssm.conformance.scale import Spread
    from refssm.conformance.session import FOLDER

    asked = {"--workers": workers != 1, "--dask": dask is not None, "--resume": resume}
    for option in (name for name, given in asked.items() if given):
        if in_process:
            raise UsageError(f"{option} and --in-process do not go together: one is for debuggers")
        if inputs is not None:
            raise UsageError(f"{option} is for many cases, --inputs is one: leave {option} out")
    if workers == 0:
        raise UsageError("--workers 0: how many processes, or -1 for one on each core")
    if workers != 1 and dask is not None:
        raise UsageError("--workers is for this machine, --dask for a cluster: leave one out")
    return Spread(workers, dask, FOLDER if resume else None)


def _again(as_, told, where, cases) -> str:
    """The options that calling the same function once more takes."""
    words = [f"--as {as_}"] if as_ else []
    words += [f"--{k}" if v is True else f"--{k} {shlex.quote(v)}" for k, v in told.items()]
    words += [f"--cases {cases}"] if cases else []
    words += [f"--where {shlex.quote(text)}" for text in where or ()]
    return " ".join(words)


def _where(texts, worker):
    from refssm.conformance.plugin import operator_named
    from refssm.conformance.where import parse

    return parse(texts or (), [operator_named(o.name) for o in worker.found if o.judged])


def _settings(as_, dtype, check, seed, profile, inputs) -> dict:
    """Checked options, as a session takes them."""
    from refssm.conformance.checks import NAMES, PROFILES
    from refssm.conformance.plugin import UsageError, operator_named
    from refssm.testing import TYPES

    if as_:
        operator_named(as_)
    if inputs is not None and {*(check or ())} - {"value"}:
        raise UsageError("--inputs judges the value of one call: leave --check out")
    if profile not in PROFILES:
        raise UsageError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
    for name in check or ():
        if name not in NAMES:
            raise UsageError(f"no check {name!r}; there are {', '.join(NAMES)}")
    for name in dtype or ():
        if name not in TYPES:
            raise UsageError(f"no type {name!r} is judged; there are {', '.join(TYPES)}")
    return {
        "profile": profile,
        "seed": seed,
        "types": tuple(dtype or ()),
        "only_checks": tuple(check or ()),
    }


def _targets(targets, subject, as_, inputs, output) -> tuple[list[str], list[str]]:
    """What to judge, and a sentence for each library that is not installed."""
    from refssm.conformance import subjects
    from refssm.conformance.plugin import UsageError

    if output is not None:
        if targets or subject or not as_ or inputs is None:
            raise UsageError(
                "--output grades a saved result: say --as OPERATOR --inputs, no target"
            )
        return [str(output)], []
    for name in subject or ():
        if name not in subjects.NAMES:
            raise UsageError(f"no subject {name!r}; there are {', '.join(subjects.NAMES)}")
    absent = {name: subjects.absent(name) for name in subject or ()}
    there = [name for name in subject or () if not absent[name]]
    places = [*(targets or ()), *(t for name in there for t in subjects.target(name))]
    if not places and not any(absent.values()):
        raise UsageError("nothing to judge: name a file, a module or --subject")
    if as_ and len(places) > 1:
        raise UsageError("--as says what one function is; name one target")
    return places, [f"skip {name}   {reason}" for name, reason in absent.items() if reason]


def _worker(target, name, timeout, in_process, told, output=None):
    from refssm.conformance.inputs import Recorded
    from refssm.conformance.plugin import find
    from refssm.conformance.session import FOLDER
    from refssm.conformance.worker import InProcess, Worker

    if output is not None:
        return Recorded(name, output, told.get("layout", ""))
    if in_process:
        return InProcess(find(target, name, told), FOLDER)
    return Worker(target, name, timeout, told)


def _older(target, name, timeout, in_process, told):
    from contextlib import nullcontext

    if not target:
        return nullcontext()
    return _worker(target, name, timeout, in_process, told | {"silent": True})


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
