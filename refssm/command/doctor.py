"""`refssm doctor`: which operator each function of a file is, how to judge it, and a test file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TIMEOUT, NOTHING = 10.0, 5
Target = Annotated[
    str, typer.Argument(help="file.py or module with your functions; file.py::function for one.")
]
Write = Annotated[Path | None, typer.Option(help="Write the tests to this new file.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=1e6, help="Time limit of a call in seconds.")]


def doctor(target: Target, write: Write = None, timeout: Timeout = TIMEOUT) -> int:
    """Guess the operator, framework and layout of each function, and write a test for it."""
    from refssm.conformance.doctor.guess import NAMED, diagnose
    from refssm.conformance.doctor.telling import lines, tests
    from refssm.conformance.judging.certificate import refuse_if_wrong
    from refssm.conformance.usage_error import UsageError

    if write is not None and write.exists():
        raise UsageError(f"{write} already exists: --write wants the name of a new file")
    if write is not None and not write.resolve().parent.is_dir():
        raise UsageError(f"{write}: No such file or directory")
    refuse_if_wrong()
    target, _, only = target.partition("::")
    stem = Path(target).stem.rpartition(".")[2]
    written = write or Path(f"test_{stem}.py")
    with _Children(target, timeout) as children:
        told = []
        for function in _wanted(children.functions, target, only):
            told.append(diagnose(function, children.living))
            typer.echo("\n".join(lines(told[-1], target, str(written))) + "\n")
    found = [t for t in told if t.function.operator or (t.guesses and t.guesses[0].how != NAMED)]
    if any(t.guesses and t.guesses[0].how != NAMED for t in told):
        text = tests(told, target, written)
        if write is None:
            typer.echo(f"# {written}: `--write {written}` writes this file\n{text}")
        else:
            write.write_text(text, encoding="utf-8")
            typer.echo(f"{write} written; next: pytest {write}")
    return 0 if found else NOTHING


def _wanted(functions, target: str, only: str):
    """All functions, or the one that is wanted."""
    from refssm._names import did_you_mean
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
