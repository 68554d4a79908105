"""Run a program on one folder: without a shell, with a time limit; a failure is one sentence."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
from pathlib import Path

from refssm.conformance.calling.one_call import Unanswered
from refssm.conformance.calling.processes.kept import Running, Runs, runs
from refssm.conformance.calling.processes.tail import Tail
from refssm.conformance.exchange import files
from refssm.conformance.exchange.call import DECLINED, TypedCall
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
