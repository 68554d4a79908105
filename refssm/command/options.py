"""The options of `refssm verify`, by name: what to judge, how to call it, how much to print.

A run has them from the command line, with [tool.refssm] as defaults.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

# the name of each option in [tool.refssm]; other keys are not a default of one option
KEYS = {
    "profile": "profile",
    "seed": "seed",
    "dtype": "dtypes",
    "check": "checks",
    "timeout": "timeout",
    "known": "known-failures",
    "allow_thin": "allow-thin",
}


def with_options(options: Any) -> Callable[[Callable], Callable]:
    """A command of `(ctx, given)` as typer wants it: each field of `options` a parameter."""
    hints = get_type_hints(options, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(f.name, keyword, default=f.default, annotation=hints[f.name])
        for f in fields(options)
    ]
    ctx = inspect.Parameter(
        "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
    )

    def decorate(command: Callable) -> Callable:
        @wraps(command)
        def called(ctx: typer.Context, **given: Any) -> int:
            return command(ctx, options(**given))

        called.__signature__ = inspect.Signature([ctx, *parameters])  # pyright: ignore[reportAttributeAccessIssue]
        called.__annotations__ = {"ctx": typer.Context, **hints, "return": int}
        return called

    return decorate


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
        help="Read [tool.refssm] from this file, not from the nearest pyproject.toml.",
    ),
]
NoConfig = Annotated[
    bool, typer.Option("--no-config", is_eager=True, help="Do not read any pyproject.toml.")
]
Targets = Annotated[
    list[str] | None, typer.Argument(help="file.py, file.py::function, module or module:function.")
]
As = Annotated[str, typer.Option("--as", help="The operator that the function implements.")]
Subject = Annotated[
    list[str] | None,
    typer.Option(help="Judge a known library: scipy, jax, torch, jit, …; repeatable."),
]
Against = Annotated[
    str, typer.Option(help="An older implementation: compare the two on the same cases.")
]
Inputs = Annotated[
    Path | None,
    typer.Option(help="Judge on your own arrays: an .npz file, one array per argument."),
]
Output = Annotated[
    Path | None,
    typer.Option(help="Grade this saved result (.npy, .npz) of --inputs; no code runs."),
]
WhereText = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=LOW..HIGH: limit an argument or a size to this range; re(NAME), im(NAME), "
        "abs(NAME): a part of it; repeatable."
    ),
]
Exec = Annotated[
    str,
    typer.Option(
        "--exec", help='Judge a program, as "./prog {case}"; {case} becomes the folder of a case.'
    ),
]

Framework = Annotated[
    str, typer.Option(help="The arrays to call it with: numpy, torch, jax, cupy.")
]
Device = Annotated[
    str, typer.Option(help='The device of the arrays: "cuda", "cuda:1", for JAX "gpu".')
]
AxesText = Annotated[str, typer.Option(help='The order of its axes: "b n l, b n l -> b n l".')]
Vjp = Annotated[
    bool | None, typer.Option("--vjp/--no-vjp", help="Also judge the framework's own gradient.")
]
Ftz = Annotated[
    bool | None, typer.Option("--ftz/--no-ftz", help="Allow it to flush subnormal numbers to zero.")
]
Deterministic = Annotated[
    bool | None,
    typer.Option(
        "--deterministic/--no-deterministic",
        help="Equal calls must give equal bits, or may differ within tolerance.",
    ),
]
KindsOfNumbers = Annotated[
    str, typer.Option("--kinds", help='"complex": never call it with real arrays; or "any".')
]
Timeout = Annotated[
    float,
    typer.Option(
        min=0.1, max=1e6, help="Time limit of a call in seconds; of the first call five times that."
    ),
]
InThisProcess = Annotated[
    bool, typer.Option("--in-process", help="Use no child process, so that debuggers work.")
]

Dtype = Annotated[list[str] | None, typer.Option(help="Judge only this type; repeatable.")]
CheckName = Annotated[list[str] | None, typer.Option(help="Run only this check; repeatable.")]
Seed = Annotated[int, typer.Option(min=0, help="The seed of the random cases.")]
ProfileName = Annotated[str, typer.Option(help="How many cases: quick, default or thorough.")]
AllowThin = Annotated[
    bool,
    typer.Option(
        "--allow-thin", help="Checks that could judge only few cases do not make the exit code 1."
    ),
]
KnownFile = Annotated[
    Path | None,
    typer.Option("--known", help="A list of known failures; each has a reason and an expiry date."),
]
WriteKnown = Annotated[
    Path | None, typer.Option(help="Write the failures to such a list; then fill in the reasons.")
]
PresetName = Annotated[
    str,
    typer.Option(
        "--preset",
        help="Draw only cases of this preset, a system that models start from: `refssm show` lists "
        "an operator's.",
    ),
]
Cases = Annotated[
    int | None,
    typer.Option(
        min=1, max=10**7, help="The number of cases of each check, instead of the profile's."
    ),
]
Time = Annotated[
    float | None,
    typer.Option(
        "--time",
        min=1,
        max=1e6,
        help="Judge for about so many seconds: values and gradients get most of them; the report "
        "says what was left out.",
    ),
]
Explain = Annotated[
    float,
    typer.Option(
        "--explain",
        min=0,
        max=1e6,
        help="Seconds for explaining the failures of one check: smaller inputs, the likely cause.",
    ),
]
Workers = Annotated[
    int, typer.Option(min=-1, max=1024, help="The number of processes; -1: one per core.")
]
Dask = Annotated[
    str | None, typer.Option(help="Judge on the Dask cluster with this scheduler address.")
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Continue a killed run: results are recorded, and a second run skips them."
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every check in full, as soon as it ended.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only: one line.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Html = Annotated[
    Path | None, typer.Option(help="Write an HTML page with pictures of the failures to this file.")
]


UNTOLD = (
    "targets",
    "json",
    "html",
    "verbose",
    "quiet",
    "config",
    "no_config",
    "write_known",
)  # reported elsewhere, or not a setting
OF_CASES = ("dtype", "check", "known")  # not for --inputs
TIMEOUT = 60.0
EXPLAIN = 60.0


@dataclass(frozen=True)
class Asked:
    """Options of a run: the command line overrides an author's declaration, that the file."""

    ctx: typer.Context
    own_data: bool  # --inputs: the file's checks, types, known failures do not apply

    @property
    def config(self):
        """The table [tool.refssm]; empty if there is none."""
        return self.ctx.obj

    def option(self, name: str):
        """The value of an option; None if it comes from the file but does not apply."""
        given = self.ctx.params[name]
        return given if self._counts(name) or not self._from_file(name) else None

    @property
    def targets(self) -> list[str]:
        """The targets of the command line; if it names none, those of [tool.refssm]."""
        return [*(self.ctx.params["targets"] or ())] or self._places("targets")

    @property
    def subjects(self) -> list[str]:
        """Known libraries to judge; those of the file are ignored once a target is given."""
        return [*(self.ctx.params["subject"] or ())] or self._places("subjects")

    def _places(self, key: str) -> list[str]:
        named = any(self.ctx.params[name] for name in ("targets", "subject", "exec_"))
        return [] if named or self.ctx.params["output"] else [*self.config.get(key, ())]

    @property
    def every(self) -> bool:
        """True if everything that the file names is judged."""
        return bool(self._places("targets") or self._places("subjects"))

    @property
    def whole(self) -> bool:
        """True if no target is left out, of the command line or the file."""
        there = self.config.get("targets") or self.config.get("subjects")
        return (self.every or not there) and not any(map(self.part, self.targets))

    def part(self, target: str) -> bool:
        """True if only one function of a target is judged."""
        return ":" in target or bool(self.ctx.params["as_"])

    @property
    def told(self) -> dict:
        """Call options that override declarations; `usual`: values if nothing is declared."""
        names = ("framework", "device", "layout", "vjp", "ftz", "deterministic", "kinds")
        told = {n: self.ctx.params[n] for n in names if self.ctx.params[n] not in (None, "")}
        usual = {n: value for n, value in self.config.declared.items() if n not in told}
        return told | ({"usual": usual} if usual else {})

    def ranges(self, names: Iterable[str]) -> list[str]:
        """Ranges as texts: from the command line, else those of the file for known names."""
        from refssm.conformance.cases.ranges import split

        if self.ctx.params["where"] or self.own_data:
            return [*(self.ctx.params["where"] or ())]
        known = {*names}
        return [text for text in self.config.get("where", ()) if split(text)[0] in known]

    def settings(self) -> str:
        """All options that differ from the defaults, with their source, in one line."""
        given = {o.name: o for o in self.ctx.command.params if o.name not in UNTOLD}
        values = {
            n: self.ctx.params[n] for n, o in given.items() if self.ctx.params[n] != o.default
        }
        typed = {
            given[name].opts[0].removeprefix("--"): value
            for name, value in values.items()
            if self._source(name) == "COMMANDLINE"
        }
        read = {KEYS[name]: values[name] for name in KEYS if name in values and self._counts(name)}
        read |= self.told.get("usual", {})
        if not self.ctx.params["where"] and not self.own_data and "where" in self.config.values:
            read["where"] = self.config.get("where")
        parts = (("command line", typed), (str(self.config), read))
        return "; ".join(f"{whence}: {_shown(values)}" for whence, values in parts if values)

    def _counts(self, name: str) -> bool:
        """True if an option's value comes from the file and applies."""
        return self._from_file(name) and not (self.own_data and name in OF_CASES)

    def _from_file(self, name: str) -> bool:
        return self._source(name) == "DEFAULT_MAP"

    def _source(self, name: str) -> str:
        source = self.ctx.get_parameter_source(name)
        return source.name if source else ""


def _shown(values: dict) -> str:
    """Settings in one line."""
    return ", ".join(f"{name.replace('_', '-')} {_words_of(v)}" for name, v in values.items())


def _words_of(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
