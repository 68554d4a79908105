"""Every command explains itself, with each version of Typer and Click."""

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from judging import run

from refssm.command.application import RootGroup, VerifyHelp, app
from refssm.training.setup import ROLES

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


def test_the_command_alone_prints_its_help(capfd):
    result, out, err = run(capfd)
    assert (result, err) == (0, "")
    assert (0, out, "") == run(capfd, "--help")
    assert out.startswith("Usage: refssm")


@pytest.mark.parametrize("group", ["plot", "cases", "experiment", "vectors"])
def test_a_group_alone_prints_its_help(capfd, group):
    result, out, err = run(capfd, group)
    assert (result, err) == (0, "")
    assert out.startswith(f"Usage: refssm {group}")


def test_each_command_is_in_one_section_of_the_help_with_a_whole_sentence(capfd):
    _, out, _ = run(capfd)
    named = [name for names in RootGroup.sections.values() for name in names]
    assert sorted(named) == sorted(GROUP.commands)
    assert "..." not in out.partition("Options:")[2]
    told = " ".join(out.split())
    for name, command in GROUP.commands.items():
        sentence = " ".join((command.help or "").partition("\n\n")[0].split())
        assert f"{name} {sentence}" in told.replace("plug- in", "plug-in")
        assert sentence.endswith((".", "…"))


def test_each_option_of_verify_is_in_one_section_of_its_help(capfd):
    _, out, _ = run(capfd, "verify", "--help")
    named = [name for names in VerifyHelp.sections.values() for name in names]
    assert sorted(named) == sorted([*(p.name for p in GROUP.commands["verify"].params), "help"])
    places = [out.index(f"\n{title}:\n") for title in VerifyHelp.sections]
    assert places == sorted(places)
    assert "list[" not in out
    for option in GROUP.commands["verify"].params:
        text = getattr(option, "help", "")
        assert text.endswith("."), option.name
        assert " ".join(text.split()[:4]) in " ".join(out.split()), option.name


def test_train_offers_the_operators_that_it_runs_and_no_others(capfd):
    _, out, _ = run(capfd, "train", "--help")
    (offered,) = re.findall(r"Operators: ([\w, ]+)\.", " ".join(out.split()))
    assert tuple(re.split(", | or ", offered)) == ROLES


@pytest.mark.parametrize("words", [[], ["verify", "--help"]], ids=["refssm", "verify"])
def test_the_examples_of_the_help_are_commands_with_options_that_exist(capfd, words):
    _, out, _ = run(capfd, *words)
    examples = (VerifyHelp if words else RootGroup).examples
    assert len(examples) >= 5
    for line in examples:
        assert f"  {line}\n" in out
        words = shlex.split(line, comments=True)
        options = {o for p in GROUP.commands[words[1]].params for o in p.opts}
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize(
    ("typed", "wanted"), [("refssm ver", "verify"), ("refssm plot m", "memory")]
)
def test_the_shell_completes_commands(typed, wanted):
    told = {"_REFSSM_COMPLETE": "complete_bash", "COMP_WORDS": typed}
    told["COMP_CWORD"] = f"{len(typed.split()) - 1}"
    done = subprocess.run(
        [sys.executable, "-m", "refssm"], env={**os.environ, **told}, capture_output=True,
        encoding="utf-8", check=True,
    )  # fmt: skip
    assert done.stdout.split() == [wanted]


def test_completion_is_installed_where_the_shell_reads_it(tmp_path):
    # else the shell is the one that called the tests; that of `make` is not known to typer
    told = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "refssm", "--install-completion", "bash"], check=False,
        env={**os.environ, **told}, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "_REFSSM_COMPLETE=complete_bash" in (tmp_path / ".bash_completions/refssm.sh").read_text(
        encoding="utf-8"
    )
