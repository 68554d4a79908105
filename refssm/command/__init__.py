"""The command `refssm`: one file per subcommand; each imports its satellite packages when called.

Exit codes: 0 pass; 1 a check failed, was inaccurate or ended in an error; 2 interrupted; 3 internal
error; 4 usage error; 5 nothing left to check.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys

import typer

from refssm.command import (
    bench,
    cases,
    catalog,
    doctor,
    experiment,
    find,
    listing,
    new,
    plot,
    replay,
    train,
    vectors,
    verify,
)
from refssm.command.group import Group
from refssm.command.saying import say

CTRL_C = 130  # newer versions of Typer return this for a KeyboardInterrupt
INTERRUPTED, INTERNAL, USAGE = 2, 3, 4  # 1 and 5 are results of `verify`

app = typer.Typer(
    cls=Group,
    name="refssm",
    help="Check implementations of state-space operators: right or wrong, and how accurate.",
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("verify")(verify.verify)
app.command("bench")(bench.bench)
app.command("train")(train.train)
app.command("find")(find.find_operators)
app.command("list")(listing.list_operators)
app.command("show")(catalog.show_operator)
app.command("doctor")(doctor.doctor)
app.command("replay")(replay.replay)
app.command("new")(new.new_plugin)
app.add_typer(cases.app, name="cases")
app.add_typer(plot.app, name="plot")
app.add_typer(experiment.app, name="experiment")
app.add_typer(vectors.app, name="vectors")


def _print_version(wanted: bool) -> None:
    if wanted:
        from refssm import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version."
    ),
) -> None:
    """Check implementations of state-space operators: right or wrong, and how accurate."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; never with a traceback."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # handle SIGTERM like Ctrl-C, so that child processes end: `timeout 60 refssm verify`, a CI
        # limit
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(code(arguments))


def _encoding(stream: io.TextIOWrapper) -> str:
    """UTF-8 where the locale has only ASCII (LC_ALL=POSIX): Click decides the same."""
    return "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else stream.encoding


def code(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=_encoding(stream), errors="backslashreplace")
    try:
        result = app(args=arguments, prog_name="refssm", standalone_mode=False)
        if result == CTRL_C:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except typer.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # nobody reads our output any more: `refssm list | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from refssm.conformance.usage_error import UsageError

        told = getattr(error, "format_message", None)  # Typer's usage errors
        if isinstance(error, UsageError) or told:
            say(told() if told else str(error))
            return USAGE
        if os.environ.get("REFSSM_DEBUG"):
            raise
        text = " ".join(f"{type(error).__name__}: {error}".split())
        say(
            f"this is a bug of refssm: {text}; please report it; REFSSM_DEBUG=1 shows the traceback"
        )
        return INTERNAL
