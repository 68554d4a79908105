"""`refssm verify`: judge the implementations in a file, a module, or a known library."""

import shlex
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import typer

from refssm.command import checked, spoken, terminal, written
from refssm.command import options as o
from refssm.command.options import EXPLAIN, TIMEOUT, Asked
from refssm.command.saying import say

FAILED, NOTHING = 1, 5


@dataclass(frozen=True)
class VerifyOptions:
    """All options of `refssm verify`, as the command line or [tool.refssm] has them."""

    targets: o.Targets = None
    as_: o.As = ""
    subject: o.Subject = None
    against: o.Against = ""
    exec_: o.Exec = ""
    inputs: o.Inputs = None
    output: o.Output = None
    where: o.WhereText = None
    framework: o.Framework = ""
    device: o.Device = ""
    layout: o.AxesText = ""
    vjp: o.Vjp = None
    ftz: o.Ftz = None
    deterministic: o.Deterministic = None
    kinds: o.KindsOfNumbers = ""
    dtype: o.Dtype = None
    check: o.CheckName = None
    seed: o.Seed = 0
    profile: o.ProfileName = "default"
    preset: o.PresetName = ""
    cases: o.Cases = None
    time: o.Time = None
    explain: o.Explain = EXPLAIN
    workers: o.Workers = 1
    dask: o.Dask = None
    resume: o.Resume = False
    json: o.Json = False
    html: o.Html = None
    verbose: o.Verbose = False
    quiet: o.Quiet = False
    timeout: o.Timeout = TIMEOUT
    in_process: o.InThisProcess = False
    allow_thin: o.AllowThin = False
    known: o.KnownFile = None
    write_known: o.WriteKnown = None
    config: o.ConfigFile = None
    no_config: o.NoConfig = False


@o.with_options(VerifyOptions)
def verify(ctx: typer.Context, given: VerifyOptions) -> int:
    """Judge an implementation: is it right, how accurate is it, and if wrong, where and why."""
    checked.check_options(
        given.framework, given.config, given.no_config, given.preset, given.inputs
    )
    voice = spoken.of(given.verbose, given.quiet, given.json)
    crew = ctx.with_resource(checked.started(ctx.params))  # before the imports of the judge
    run, spread = _VerifyRun(ctx, given, voice), None
    try:
        terminal.release()
        checked.check_inputs(run.settings, given.inputs)
        written.check_new_list(given.write_known)
        places = run.places()
        spread = ctx.with_resource(checked.spread(crew, ctx.params))
        run.judge_all(places, spread)
    except KeyboardInterrupt:
        run.interrupted(spread)
        raise
    spread.discard()
    result = run.end()
    if given.write_known is not None:
        written.write_known(given.write_known, run.results)
    return result


class _VerifyRun:
    """One run: its options, and the results so far."""

    def __init__(self, ctx: typer.Context, given: VerifyOptions, voice: str):
        from refssm.command.spoken import ProgressBar

        asked = Asked(ctx, own_data=given.inputs is not None)
        self.asked, self.given, self.json = asked, given, voice == spoken.JSON
        self.started = time.perf_counter()
        self.settings = replace(
            checked.settings_of(asked, given.seed, given.profile),
            evidence=written.pictures_asked(given.html),
            cases=given.cases or 0,
            preset=checked.preset(given.preset),
            explain=given.explain,
            allow_thin=given.allow_thin,
            overrides=asked.told,
            diagnose=True,
        )
        self.clock = clock_of(given.time)
        self.told: list[str] = []
        self.known, self.narrowed = written.known_failures(asked), asked.own_data
        self.bar, self.results = ProgressBar(), []
        self.report = spoken.Report(voice, self.bar)

    def places(self) -> list[str]:
        """The targets; prints a line for each library that is not installed."""
        places, absent = checked.targets(
            self.asked, self.given.as_, self.given.inputs, self.given.output
        )
        self.report.head(*absent)
        self.told += absent
        return places

    def judge_all(self, places, spread) -> None:
        """Judge all targets, with progress on a terminal, once the judge has checked itself."""
        from refssm.conformance.judging.certificate import refuse_if_wrong

        refuse_if_wrong()
        with self.bar:
            for number, target in enumerate(places):
                self.clock.places = len(places) - number
                self.judge(target, spread)

    @property
    def how(self) -> dict:
        """How implementations are found and called."""
        given = self.given
        timeout, here = given.timeout, given.in_process
        return {"name": given.as_ or None, "timeout": timeout, "in_process": here}

    def judge(self, target, spread) -> None:
        """Judge one target; of several functions of one operator, one after the other."""
        from refssm.conformance.usage_error import Several

        part, told = self.asked.part(target), self.asked.told
        self.bar.tick(f"importing {target}")
        try:
            worker = worker_of(target, told, self.given.output, **self.how)
        except Several as several:
            others = [operator for _, operator in several.parts]
            for place, _ in several.parts:
                self.bar.tick(f"importing {place}")
                self._judge(worker_of(place, told, **self.how), place, part, others, spread)
        else:
            self._judge(worker, target, part, (), spread)

    def _judge(self, worker, target, part, others, spread) -> None:
        """Judge what a worker found; prints each result as soon as it is known."""
        from refssm.conformance.running.session import trials_of
        from refssm.conformance.running.settings import Session

        function = target.rpartition("::")[2] if others else ""
        inputs, against = self.given.inputs, self.given.against
        with worker, older_of(against, self.asked.told, **self.how) as older:
            texts, where = checked.where(self.asked, worker, others)
            self.narrowed |= bool(texts)
            header = self._header(target, worker, [r for r in (where, inputs) if r])
            self.report.head(_unlike(header, self.told))
            self.told.append(header)
            limits = (*texts, *dict.fromkeys(t for offer in worker.found for t in offer.sizes))
            asked = replace(self.settings, where=where, limits=limits, older=against)
            asked = replace(asked, function=function)
            session = Session(worker, target, asked, older, self.report.tick, spread)
            session.clock = self.clock
            for result in _results(session, inputs):
                result = self.known.marked(result)
                self.results.append(result)
                self.report.result(result, worker.found, function)
            self.known.judged(target, trials_of(session), part)

    def _header(self, target, worker, narrowed) -> str:
        from refssm.conformance.report import lines

        settings = [self.asked.settings()]
        settings += [f"known failures: {self.known}"] if self.known else []
        return lines.header(
            target,
            self.settings.profile,
            self.settings.seed,
            worker.found,
            ", ".join(f"limited to {r}" for r in narrowed),
            [line for line in settings if line],
        )

    def interrupted(self, spread) -> None:
        """Print the report so far, and what the record of `--resume` lacks."""
        self.end(interrupted=True)
        for sentence in spread.lost if spread else ():
            say(f"--resume will go on from there: {sentence}")

    def end(self, interrupted: bool = False) -> int:
        """Print the report; returns the exit code."""
        from refssm.conformance.report import records
        from refssm.conformance.report.verdict import verdict_of

        asked = self.asked
        scope = {"whole": asked.whole, "every": asked.every, "narrowed": self.narrowed}
        complaints = [] if interrupted else self.known.complaints(**scope)
        how = {"complaints": complaints, "interrupted": interrupted}
        verdict = verdict_of(self.results, **how)
        seconds = time.perf_counter() - self.started
        if self.json:
            more = {"config": str(self.asked.config) or None, "interrupted": interrupted}
            listed = self.known.path and str(self.known.path)
            more |= {"known_failures": listed, "complaints": complaints}
            more |= {"seed": self.settings.seed, "profile": self.settings.profile}
            with terminal.held():
                typer.echo(records.document(self.results, **more))
        else:
            self.report.end(verdict, self.results, complaints, seconds)
        if not interrupted:
            self.report.say(
                *written.write_page(self.given.html, verdict, self.results, self.told, seconds)
            )
        if complaints or any(r.failed for r in self.results):
            return FAILED
        passed = any(r.verdict == "pass" or r.known or r.tolerated for r in self.results)
        return 0 if passed else NOTHING


def _results(session, inputs):
    from refssm.conformance.running.own_arrays import judge_inputs
    from refssm.conformance.running.session import results_of

    return results_of(session) if inputs is None else judge_inputs(session, inputs)


def clock_of(seconds: float | None) -> Any:
    """The time of a run, from now on."""
    from refssm.conformance.running.patience import UNLIMITED, Clock

    return Clock(UNLIMITED if seconds is None else seconds)


def _unlike(header: str, before: list[str]) -> str:
    """The lines of a header that differ from the header before it."""
    known = before[-1].splitlines() if before else []
    return "\n".join(line for line in header.splitlines() if line not in known)


def worker_of(target, told, output=None, *, name, timeout, in_process) -> Any:
    """Runs a target's implementations: in a child process or here, or from a saved result."""
    from refssm.conformance.calling.finding import find, looking
    from refssm.conformance.calling.one_call import InProcess
    from refssm.conformance.calling.recorded import Recorded
    from refssm.conformance.calling.worker import Worker
    from refssm.conformance.exchange import program
    from refssm.conformance.running.settings import FOLDER

    if output is not None:
        return Recorded(name, output, {**told.get("usual", {}), **told}.get("layout", ""))
    if target.startswith(program.PREFIX):
        (command,) = shlex.split(target.removeprefix(program.PREFIX))
        usual = told.get("usual", {})  # the file's framework and device apply to functions only
        usual = {k: usual[k] for k in ("vjp", *program.TOLD) if k in usual}
        own = {k: v for k, v in told.items() if k != "usual"}
        return program.Programs(command, name, timeout, usual | own)
    if in_process:
        with looking(target):
            return InProcess(find(target, name, told), FOLDER)
    return Worker(target, name, timeout, told)


def older_of(target, told, **how):
    """The same for an older implementation; a null context if there is none."""
    if not target:
        return nullcontext()
    return worker_of(target, told | {"silent": True}, **how)
