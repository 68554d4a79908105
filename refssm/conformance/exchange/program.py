"""`refssm verify --exec "./prog {case}" --as OPERATOR`: judge a program instead of a function.

Every call writes a folder, runs the program on it and reads its outputs, so all checks of functions
apply: failures are shrunk, and the law `split` uses the program's own state. A program runs
without a shell and with a time limit; a failure is one sentence.
"""

import os
import shlex
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from refssm._declaration.implements import Declaration
from refssm._declaration.layout import canonical, sizes_of
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.one_call import InProcess, Outcome, Unanswered
from refssm.conformance.calling.processes.kept import Running, Runs, runs
from refssm.conformance.calling.processes.tail import Tail
from refssm.conformance.exchange import files
from refssm.conformance.exchange.call import DECLINED, TypedCall, described
from refssm.conformance.exchange.files import FileArrays
from refssm.conformance.number_types import judged_type, number_type
from refssm.conformance.usage_error import UsageError

PLACE = "{case}"
DECLINES = 77  # the exit code that means "skipped" in test suites
HANGS = 2  # after so many it is not run again


class Ended(Unanswered):
    """A program gave no result.

    It is no Exception, because the judge reports those as exceptions of Python code.
    """

    def __init__(self, status: str, message: str):
        super().__init__(message)
        self.status = status


class Runner:
    """A command with `{case}` in it, and the time limit of one run in seconds."""

    def __init__(self, command: str, timeout: float):
        self.timeout, self.hangs = timeout, 0
        self._runs: Runs | None = None
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--exec {command!r}: {str(error).lower()}") from None
        if not any(PLACE in word for word in self.words):
            raise UsageError(
                f"--exec {command!r} wanted {PLACE} in it, which becomes the folder of a case"
            )
        if shutil.which(self.words[0]) is None:
            raise UsageError(f"--exec {command!r}: the program {_absent(self.words[0])}")

    def run(self, folder: Path) -> None:
        """Run the command on a folder; raises Ended if it fails or declines."""
        if self.hangs >= HANGS:
            raise Ended(
                "hung", f"not run again: an earlier run did not end within {self.timeout:g} s"
            )
        words = [word.replace(PLACE, str(folder.resolve())) for word in self.words]
        process, tail = self._started(words)
        try:
            code = process.wait(self.timeout)
        finally:  # kill all that it started too, also on Ctrl-C
            process.end()
            printed = tail.last_line()
        self._runs = None if process.lost else self._runs
        if code is None:
            self.hangs += 1
            raise Ended("hung", f"did not end within {self.timeout:g} s{printed}")
        if code == DECLINES:
            raise Ended("declined", f"ended with exit code {code}{printed}")
        if process.lost:
            raise Ended("crashed", f"lost the process that would end what it starts{printed}")
        if code < 0:
            raise Ended("crashed", f"was killed by {_signal(-code)}{printed}")
        if code:
            raise Ended("raised", f"ended with exit code {code}{printed}")

    def _started(self, words) -> tuple[Running, Tail]:
        self._runs = self._runs or runs()
        tail = Tail()
        try:
            return self._runs.start(words, tail.write), tail
        except OSError as error:
            raise UsageError(f"--exec: {words[0]!r} cannot be run: {error.strerror}") from None
        finally:
            tail.start()


def answer(runner: Runner, call: TypedCall, folder: Path) -> list:
    """Run a program on the folder of a call; its outputs as arrays, or Ended."""
    before = [files.digest(folder / slot.file) for slot in call.inputs]
    remove_answers(call, folder)
    runner.run(folder)
    for slot, was in zip(call.inputs, before, strict=True):
        path = folder / slot.file
        if not path.is_file() or files.digest(path) != was:
            raise Ended("malformed", f"the call wrote to its input `{slot.name}`")
    return outputs(call, folder)


def remove_answers(call: TypedCall, folder: Path) -> None:
    """Delete the outputs of an earlier run: a program that writes nothing must not pass."""
    for name in (*(slot.file for slot in call.outputs), DECLINED):
        (folder / name).unlink(missing_ok=True)


def outputs(call: TypedCall, folder: Path) -> list:
    """The outputs in the folder of a call, or Ended."""
    if (folder / DECLINED).exists():
        raise Ended("declined", "")
    absent = [slot.file for slot in call.outputs if not os.path.lexists(folder / slot.file)]
    if absent:
        raise Ended("raised", f"wrote no {', '.join(absent)}")
    try:
        return [files.read(folder / slot.file) for slot in call.outputs]
    except files.Unreadable as error:
        raise Ended("malformed", str(error)) from None


def _absent(word: str) -> str:
    """Why a program cannot be run."""
    if not os.path.exists(word):
        return f"{word!r} does not exist"
    local = "/" not in word and os.access(word, os.X_OK)
    return (
        f"{word!r} is not on the PATH: write ./{word}" if local else f"{word!r} is not executable"
    )


def _signal(number: int) -> str:
    known = {s.value: s.name for s in signal.Signals}
    return known.get(number, f"signal {number}")


PREFIX = "--exec "  # prefix of the target in reports


def target(command: str) -> str:
    """The target that reports show for a command."""
    return PREFIX + shlex.quote(command)


@dataclass(frozen=True)
class ForeignProgram(Found):
    """An implementation whose arrays are files, and the command that runs it."""

    command: str = ""

    @property
    def adapter(self) -> FileArrays:
        """The adapter of arrays in files."""
        return FileArrays()

    @property
    def offer(self) -> Offer:
        """The description for the judge."""
        about = f"runs {self.command} for each call, with arrays in .npy files"
        return super().offer._replace(files=True, seems="", framework="files", about=about)


TOLD = ("layout", "ftz", "deterministic", "kinds")  # the options that programs have


class Programs(InProcess):
    """The interface of `Worker`, by running a program for every call."""

    def __init__(self, command: str, name: str, timeout: float, told: dict):
        self.runner, self._kind = Runner(command, timeout), number_type("float64")
        self._sizes: dict[str, int] = {}
        op, told = operator_named(name), dict(told)
        differentiable = told.pop("vjp", False)
        if unused := [f"--{word}" for word in told if word not in TOLD]:
            raise UsageError(
                f"{unused[0]} works with Python functions only: leave it out with --exec"
            )
        try:
            declared = Declaration(name, **told)
        except ValueError as error:
            raise UsageError(str(error).replace("implements: ", "", 1)) from None
        if differentiable and not op.differentiable:
            raise UsageError(f"--vjp: {op} has no gradient")
        back = self._called(name, declared, True) if differentiable else None
        found = ForeignProgram(
            op, self._called(name, declared, False), back, True, declared, command
        )
        self._op = found.op
        super().__init__([found])

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Run the program on these arguments."""
        self._kind = number_type(how.get("dtype") or judged_type(arrays))
        self._sizes = self._sizes_of(arrays, statics, bool(how.get("vjp")))
        try:
            return super().call(name, arrays, statics, **how)
        except Ended as ended:
            return Outcome(ended.status, message=str(ended))

    def _sizes_of(self, arrays, statics, vjp: bool) -> dict[str, int]:
        """The sizes of the axes of a call, also of those that the layout merges."""
        op, usual = self._op, canonical(self._op)
        named = usual.outputs * vjp + usual.inputs
        return dict.fromkeys(op.batch_names, 1) | sizes_of(op, named, arrays, statics)

    def _called(self, name: str, declared: Declaration, vjp: bool) -> Callable:
        """A function of arrays that runs the program."""
        op = operator_named(name)
        found = Found(op, lambda: None, None, declared=declared)

        def function(*arrays, **statics):
            call = described(op, vjp, self._kind, arrays, statics, found.layout, self._sizes)
            with tempfile.TemporaryDirectory(prefix="refssm-case-") as folder:
                call.write(Path(folder), arrays)
                y = answer(self.runner, call, Path(folder))
            if not vjp:
                return tuple(y) if len(y) > 1 else y[0]
            gradients = {slot.name: g for slot, g in zip(call.outputs, y, strict=True)}
            return tuple(gradients.get(f"d{n}") for n in op.inputs)

        return function
