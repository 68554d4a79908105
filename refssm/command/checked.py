"""Check options from the command line and the file: types, checks, ranges, targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from refssm._declaration.names import did_you_mean
from refssm.command.options import Asked

if TYPE_CHECKING:
    from refssm.conformance.running.settings import Settings
    from refssm.conformance.spreading.crew import Crew
    from refssm.conformance.spreading.processes import Spread


def check_options(framework: str, config, no_config: bool, preset="", inputs=None) -> None:
    """UsageError for an unknown framework, or for options that exclude each other."""
    from refssm._declaration.implements import FRAMEWORKS
    from refssm.conformance.usage_error import UsageError

    if no_config and config is not None:
        raise UsageError("--config and --no-config cannot be combined: leave one out")
    if preset and inputs is not None:
        raise UsageError("--preset draws cases and --inputs has its own: leave one out")
    if framework and framework not in FRAMEWORKS:
        raise UsageError(f"unknown framework {framework!r}; wanted one of {', '.join(FRAMEWORKS)}")


def check_inputs(settings: Settings, inputs) -> None:
    """UsageError for `--inputs` with checks that draw cases."""
    from refssm.conformance.checks.checks import GRADIENT, VALUE
    from refssm.conformance.usage_error import UsageError

    if inputs is not None and {*settings.only_checks} - {VALUE.name, GRADIENT.name}:
        raise UsageError("--inputs judges value and gradient of one call: leave other checks out")


def where(asked: Asked, worker, others=()):
    """Ranges as texts, and parsed for a session; `others` are operators of the same file."""
    from refssm._declaration.adapted import taken
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.cases.ranges import parse
    from refssm.conformance.cases.sizes import core_dims

    judged = [offer for offer in worker.found if offer.judged]
    ops = [taken(operator_named(offer.name), offer.adapters) for offer in judged]
    ops += [operator_named(name) for name in dict.fromkeys(others)]
    texts = asked.ranges(name for op in ops for name in (*op.inputs, *core_dims(op)))
    own = dict.fromkeys(text for offer in judged for text in offer.sizes)
    _refuse_outside(texts, own)
    return texts, parse([*texts, *own], ops)


def _refuse_outside(texts, own) -> None:
    """UsageError for a range in which no size of a model is."""
    from refssm.conformance.cases.ranges import split
    from refssm.conformance.usage_error import UsageError

    fixed = {name: low for name, low, _ in map(split, own)}
    for text in texts:
        name, low, high = split(text)
        if not low <= fixed.get(name, low) <= high:
            raise UsageError(f"--where {text}: the model fixes {name}={fixed[name]:g}")


def settings_of(asked: Asked, seed, profile) -> Settings:
    """The options of `refssm verify` as settings of a run."""
    check, dtype = asked.option("check"), asked.option("dtype")
    return settings(asked.ctx.params["as_"], dtype, check, seed, profile)


def settings(as_, dtype, check, seed, profile) -> Settings:
    """Check options and return them as settings of a run."""
    from refssm._declaration.implements import TYPES
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.checks.checks import NAMES, PROFILES
    from refssm.conformance.running.settings import Settings
    from refssm.conformance.usage_error import UsageError

    check, dtype = check or (), dtype or ()
    if as_:
        operator_named(as_)
    if profile not in PROFILES:
        raise UsageError(f"unknown profile {profile!r}; wanted one of {', '.join(PROFILES)}")
    for name in check:
        if name not in NAMES:
            raise UsageError(f"unknown check {name!r}; wanted one of {', '.join(NAMES)}")
    for name in dtype:
        if name not in TYPES:
            raise UsageError(f"unknown type {name!r}; wanted one of {', '.join(TYPES)}")
    how: dict = {"types": tuple(dtype), "only_checks": tuple(check), "as_": as_}
    return Settings(profile=profile, seed=seed, **how)


def preset(name: str) -> str:
    """The name of a preset; UsageError if no operator has one of this name."""
    from refssm.conformance.usage_error import UsageError
    from refssm.presets.catalog import PRESETS

    known = dict.fromkeys(p.name for presets in PRESETS.values() for p in presets)
    if name and name not in known:
        hint = did_you_mean(name, known)
        raise UsageError(
            f"unknown preset {name!r}: {hint}`refssm show OPERATOR` lists an operator's presets"
        )
    return name


def targets(asked: Asked, as_, inputs, output) -> tuple[list[str], list[str]]:
    """The targets to judge, and a sentence for each library that is not installed."""
    from refssm.conformance.exchange import program
    from refssm.conformance.usage_error import UsageError
    from refssm.subjects import libraries

    if command := asked.ctx.params["exec_"]:
        if asked.targets or asked.subjects or output or not as_:
            raise UsageError("--exec judges one program: give --as OPERATOR and no target")
        return [program.target(command)], []
    if output is not None:
        if asked.targets or asked.subjects or not as_ or inputs is None:
            raise UsageError(
                "--output grades a saved result: give --as OPERATOR and --inputs, and no target"
            )
        return [str(output)], []
    for name in asked.subjects:
        if name not in libraries.NAMES:
            raise UsageError(
                f"unknown subject {name!r}; wanted one of {', '.join(libraries.NAMES)}"
            )
    absent = {name: libraries.absent(name) for name in asked.subjects}
    there = [name for name in asked.subjects if not absent[name]]
    places = [*map(today, asked.targets), *(t for name in there for t in libraries.target(name))]
    if not places and not any(absent.values()):
        raise UsageError("nothing to judge: give a file, a module or --subject")
    if as_ and len(places) > 1:
        raise UsageError("--as is about one function: give only one target")
    return places, [f"skip {name}   {reason}" for name, reason in absent.items() if reason]


@contextmanager
def started(options: Mapping) -> Iterator[Crew | None]:
    """Check the options for parallel runs, and start the processes of `--workers`.

    These import the judge while this process does.
    """
    check_parallel(options)
    if options["workers"] == 1:
        yield None
        return
    from refssm.conformance.spreading.crew import local

    with local(options["workers"]) as crew:
        crew.start("refssm.conformance.spreading.processes")
        yield crew


@contextmanager
def spread(crew: Crew | None, options: Mapping) -> Iterator[Spread]:
    """How sessions are judged: by the started processes, those of `--dask`, or here."""
    from refssm.conformance.running.settings import FOLDER
    from refssm.conformance.spreading.processes import Spread, remote

    with ExitStack() as stack:
        if options["dask"] is not None:
            crew = stack.enter_context(remote(options["dask"]))
        yield Spread(crew, FOLDER if options["resume"] else None)


def check_parallel(options: Mapping) -> None:
    """UsageError for options of parallel runs that exclude each other."""
    from refssm.conformance.usage_error import UsageError

    workers, dask, resume = options["workers"], options["dask"], options["resume"]
    asked = {"--workers": workers != 1, "--dask": dask is not None, "--resume": resume}
    for option in (name for name, given in asked.items() if given):
        if options["in_process"]:
            raise UsageError(f"{option} and --in-process cannot be combined: leave one out")
        if options["exec_"]:
            raise UsageError(f"{option} works with Python functions only: leave it out with --exec")
        if options["inputs"] is not None:
            raise UsageError(
                f"{option} is for many cases, --inputs is one case: leave {option} out"
            )
    if workers == 0:
        raise UsageError("--workers 0: wanted 1 or more processes, or -1 for one per core")
    if workers != 1 and dask is not None:
        raise UsageError("--workers uses this machine, --dask uses a cluster: leave one out")


def today(target: str, operator: str = "") -> str:
    """The target; one that has a plug-in's former name gets today's name, and a sentence says so.

    `operator`: that of a saved failure, whose target may name no function.
    """
    from refssm.command.saying import say
    from refssm.subjects import former

    now = former.now(target, operator)
    if now != target:
        say(f"{target} is now {now}")
    return now
