"""`refssm verify`: judge the implementations in a file, a module, or a known library."""

import time
from dataclasses import replace
from pathlib import Path

import typer

from refssm.command import checked, spoken, terminal, written
from refssm.command import options as o
from refssm.command.options import TIMEOUT, Asked
from refssm.command.saying import say

FAILED, NOTHING = 1, 5


def verify(
    ctx: typer.Context,
    targets: o.Targets = None,
    as_: o.As = "",
    subject: o.Subject = None,
    against: o.Against = "",
    exec_: o.Exec = "",
    inputs: o.Inputs = None,
    output: o.Output = None,
    where: o.WhereText = None,
    framework: o.Framework = "",
    device: o.Device = "",
    layout: o.AxesText = "",
    vjp: o.Vjp = None,
    ftz: o.Ftz = None,
    deterministic: o.Deterministic = None,
    kinds: o.KindsOfNumbers = "",
    dtype: o.Dtype = None,
    check: o.CheckName = None,
    seed: o.Seed = 0,
    profile: o.ProfileName = "default",
    preset: o.PresetName = "",
    cases: o.Cases = None,
    workers: o.Workers = 1,
    dask: o.Dask = None,
    resume: o.Resume = False,
    json: o.Json = False,
    html: o.Html = None,
    verbose: o.Verbose = False,
    quiet: o.Quiet = False,
    timeout: o.Timeout = TIMEOUT,
    in_process: o.InThisProcess = False,
    allow_thin: o.AllowThin = False,
    known: o.KnownFile = None,
    write_known: o.WriteKnown = None,
    config: o.ConfigFile = None,
    no_config: o.NoConfig = False,
) -> int:
    """Judge an implementation: is it right, how accurate is it, and if wrong, where and why."""
    del targets, subject, exec_, where, device, layout, vjp, ftz  # read through `Asked`
    del deterministic, kinds, dtype, check, cases, known, workers, dask, resume, allow_thin
    checked.check_options(framework, config, no_config, preset, inputs)
    asked, voice = Asked(ctx, own_data=inputs is not None), spoken.of(verbose, quiet, json)
    crew = ctx.with_resource(checked.started(ctx.params))  # before the imports of the judge
    run, spread = _Run(asked, seed, profile, voice, html), None
    try:
        terminal.release()
        checked.check_inputs(run.settings, inputs)
        written.check_new_list(write_known)
        places = run.places(as_, inputs, output)
        spread = ctx.with_resource(checked.spread(crew, ctx.params))
        run.judge_all(places, against, inputs, output, spread, (as_, timeout, in_process))
    except KeyboardInterrupt:
        run.interrupted(spread)
        raise
    spread.discard()
    result = run.end()
    if write_known is not None:
        written.write_known(write_known, run.results)
    return result


class _Run:
    """One run: its options, and the results so far."""

    def __init__(self, asked: Asked, seed: int, profile: str, voice: str, html: Path | None):
        from refssm.command.spoken import ProgressBar

        self.asked, self.json, self.started = asked, voice == spoken.JSON, time.perf_counter()
        settings = checked.settings_of(asked, seed, profile)
        evidence, cases = written.pictures_asked(html), asked.ctx.params["cases"] or 0
        preset, thin = asked.ctx.params["preset"], asked.ctx.params["allow_thin"]
        more = {"cases": cases, "preset": checked.preset(preset), "allow_thin": bool(thin)}
        more |= {"overrides": asked.told, "diagnose": True}
        self.settings = replace(settings, evidence=evidence, **more)
        self.html, self.told = html, []
        self.known, self.narrowed = written.known_failures(asked), asked.own_data
        self.bar, self.results = ProgressBar(), []
        self.report = spoken.Report(voice, self.bar)

    def places(self, as_, inputs, output) -> list[str]:
        """The targets; prints a line for each library that is not installed."""
        places, absent = checked.targets(self.asked, as_, inputs, output)
        self.report.head(*absent)
        self.told += absent
        return places

    def judge_all(self, places, *given) -> None:
        """Judge all targets, with progress on a terminal, once the judge has checked itself."""
        from refssm.conformance.judging.certificate import refuse_if_wrong

        refuse_if_wrong()
        *given, (name, timeout, in_process) = given
        how = {"name": name or None, "timeout": timeout, "in_process": in_process}
        with self.bar:
            for target in places:
                self.judge(target, *given, **how)

    def judge(self, target, against, inputs, output, spread, **how) -> None:
        """Judge one target; of several functions of one operator, one after the other."""
        from refssm.conformance.usage_error import Several

        given, part = (against, inputs, spread, how), self.asked.part(target)
        self.bar.tick(f"importing {target}")
        try:
            worker = checked.worker_of(target, self.asked.told, output, **how)
        except Several as several:
            others = [operator for _, operator in several.parts]
            for place, _ in several.parts:
                self.bar.tick(f"importing {place}")
                worker = checked.worker_of(place, self.asked.told, **how)
                self._judge(worker, place, part, others, *given)
        else:
            self._judge(worker, target, part, (), *given)

    def _judge(self, worker, target, part, others, against, inputs, spread, how) -> None:
        """Judge what a worker found; prints each result as soon as it is known."""
        from refssm.conformance.running.session import trials_of
        from refssm.conformance.running.settings import Session

        function = target.rpartition("::")[2] if others else ""
        with worker, checked.older_of(against, self.asked.told, **how) as older:
            texts, where = checked.where(self.asked, worker, others)
            self.narrowed |= bool(texts)
            header = self._header(target, worker, [r for r in (where, inputs) if r])
            self.report.head(_unlike(header, self.told))
            self.told.append(header)
            asked = replace(self.settings, where=where, limits=tuple(texts), older=against)
            asked = replace(asked, function=function)
            session = Session(worker, target, asked, older, self.report.tick, spread)
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
            told = self.html, verdict, self.results, self.told, seconds
            self.report.say(*written.write_page(*told))
        if complaints or any(r.failed for r in self.results):
            return FAILED
        passed = any(r.verdict == "pass" or r.known or r.tolerated for r in self.results)
        return 0 if passed else NOTHING


def _results(session, inputs):
    from refssm.conformance.running.own_arrays import judge_inputs
    from refssm.conformance.running.session import results_of

    return results_of(session) if inputs is None else judge_inputs(session, inputs)


def _unlike(header: str, before: list[str]) -> str:
    """The lines of a header that differ from the header before it."""
    known = before[-1].splitlines() if before else []
    return "\n".join(line for line in header.splitlines() if line not in known)
