"""Every command explains itself, with each version of Typer and Click."""

import pytest
import typer
from judging import run

from refssm.command.application import app

GROUP = typer.main.get_command(app)
COMMANDS = [
    (name, *inner)
    for name, command in getattr(GROUP, "commands", {}).items()
    for inner in [(), *((part,) for part in getattr(command, "commands", {}))]
]


@pytest.mark.parametrize("words", [(), *COMMANDS], ids=" ".join)
def test_help_names_the_command_and_its_options(capfd, words):
    result, out, err = run(capfd, *words, "--help")
    assert (result, err) == (0, "")
    assert " ".join(["refssm", *words]) in out
    assert "--help" in out
