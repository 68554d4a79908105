"""The command's application: all subcommands."""

from types import MappingProxyType

import typer

from refssm.command import (
    bench,
    cases,
    catalog,
    doctor,
    experiment,
    new,
    plot,
    replay,
    terminal,
    train,
    vectors,
    verify,
)
from refssm.command.saying import CommandGroup, OptionsInSections


class RootGroup(CommandGroup):
    """The command itself."""

    sections = MappingProxyType({
        "Judge": ("verify", "doctor", "replay", "cases", "vectors", "bench"),
        "Look up and begin": ("find", "list", "show", "new"),
        "See and train": ("plot", "experiment", "train"),
    })  # fmt: skip
    examples = (
        "refssm verify my_ops.py                            # all functions that operators name",
        "refssm verify my_ops.py::my_scan --as linear_scan  # a function of any name",
        "refssm doctor my_ops.py                            # which operator is each function?",
        'refssm find "s4d log dt pairs"                     # the operator of a model or a paper',
        "refssm new linear_scan --framework torch           # a file with a place for yours",
    )


class VerifyHelp(OptionsInSections):
    """`refssm verify`."""

    sections = MappingProxyType({
        "What to judge": ("targets", "as_", "subject", "against", "exec_", "inputs", "output"),
        "How to call it": ("framework", "device", "layout", "vjp", "ftz", "deterministic", "kinds",
                           "timeout", "in_process"),
        "Which checks and cases": ("check", "dtype", "where", "profile", "time", "preset", "cases",
                                   "seed", "explain"),
        "What is printed": ("verbose", "quiet", "json", "html"),
        "Long runs": ("workers", "dask", "resume"),
        "Known failures, settings": ("known", "write_known", "allow_thin", "config", "no_config",
                                     "help"),
    })  # fmt: skip
    examples = (
        *RootGroup.examples[:2],
        "refssm verify my_ops.py --profile quick --check value --dtype float32",
        'refssm verify my_ops.py --framework torch --layout "b n l, b n l -> b n l"',
        'refssm verify --exec "./prog {case}" --as linear_scan',
    )


app = typer.Typer(
    cls=RootGroup,
    name="refssm",
    help="Check implementations of state-space operators: right or wrong, and how accurate.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("verify", cls=VerifyHelp)(verify.verify)
app.command("bench")(bench.bench)
app.command("train")(train.train)
app.command("find")(catalog.find_operators)
app.command("list")(catalog.list_operators)
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
    ctx: typer.Context,
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version."
    ),
) -> None:
    """Check implementations of state-space operators: right or wrong, and how accurate."""
    if ctx.invoked_subcommand != "verify":  # which releases them when it can print its results
        terminal.release()
