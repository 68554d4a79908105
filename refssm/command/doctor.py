"""`refssm doctor`: which operator each function of a file is, how to judge it, and a test file."""

import os
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from refssm.command.new import NEXT, workflow, workflow_place
from refssm.command.new import write as write_new

TIMEOUT, NOTHING = 10.0, 5
Target = Annotated[
    str, typer.Argument(help="file.py or module with your functions; file.py::function for one.")
]
Write = Annotated[Path | None, typer.Option(help="Write the tests to this new file.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=1e6, help="Time limit of a call in seconds.")]
Ci = Annotated[
    str, typer.Option("--ci", help="Also write a file that runs the tests in CI: github, gitlab.")
]
Source = Annotated[
    str, typer.Option(help="For --ci: what pip installs refssm from, a folder or an address.")
]


def doctor(
    target: Target,
    write: Write = None,
    ci: Ci = "",
    source: Source = "",
    timeout: Timeout = TIMEOUT,
) -> int:
    """Guess the operator, framework and layout of each function, and write a test for it."""
    from refssm.conformance.doctor.guess import NAMED, diagnose
    from refssm.conformance.doctor.telling import lines, tests
    from refssm.conformance.judging.certificate import refuse_if_wrong
    from refssm.conformance.usage_error import UsageError

    if write is not None and not write.resolve().parent.is_dir():
        raise UsageError(f"{write}: No such file or directory")
    if ci and write is None:
        raise UsageError("--ci runs the tests: it wants --write FILE, too")
    new = [write, workflow_place(ci, source) if ci else None]
    for place in filter(None, new):
        if os.path.lexists(place):
            raise UsageError(f"{place} already exists: --write and --ci write new files only")
    refuse_if_wrong()
    target, _, only = target.partition("::")
    stem = Path(target).stem.rpartition(".")[2]
    written = write or Path(f"test_{stem}.py")
    with _Children(target, timeout) as children:
        told = []
        for function in _wanted(children.functions, target, only):
            told.append(diagnose(function, children.living))
            found = lines(told[-1], target, str(written), later=write is None)
            typer.echo("\n".join(found) + "\n")
    found = [t for t in told if t.function.operator or (t.guesses and t.guesses[0].how != NAMED)]
    if any(t.guesses and t.guesses[0].how != NAMED for t in told):
        text = tests(told, target, written)
        if write is None:
            typer.echo(f"# {written}: `--write {written}` writes this file\n{text}")
        else:
            write_new(write, text)
            typer.echo(f"{write} written; next: pytest {write}")
            if ci:
                _write_ci(ci, source, write, {g.framework for t in told for g in t.guesses[:1]})
    return 0 if found else NOTHING


def _write_ci(ci: str, source: str, tests: Path, frameworks: set[str]) -> None:
    """Write the CI file that runs the tests."""
    commands, others = [f"pytest {quote(str(tests))}"], sorted(frameworks - {"numpy"})
    text = workflow(ci, source, "", commands, *others, "pytest")
    write_new(workflow_place(ci, source), text)
    typer.echo(f"{workflow_place(ci, source)} written; {NEXT[ci]}")


def _wanted(functions, target: str, only: str):
    """All functions, or the one that is wanted."""
    from refssm._declaration.names import did_you_mean
    from refssm.conformance.usage_error import UsageError

    wanted = [function for function in functions if only in ("", function.name)]
    if only and not wanted:
        hint = did_you_mean(only, [function.name for function in functions])
        raise UsageError(f"{target} defines no public function `{only}`; {hint}".rstrip("; "))
    return wanted


class _Children:
    """A child process with the functions of a target; another one after a crash or a hang."""

    def __init__(self, target: str, timeout: float):
        from refssm.conformance.calling.worker import Plain

        self._made = lambda: Plain(target, timeout)
        self._worker = self._made()
        self.functions = self._worker.functions

    def living(self):
        """A child that runs."""
        if not self._worker.alive:
            self._worker.close()
            self._worker = self._made()
        return self._worker

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._worker.close()
