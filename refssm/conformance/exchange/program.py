"""`refssm verify --exec "./prog {case}" --as OPERATOR`: judge a program instead of a function.

Every call writes a folder, runs the program on it and reads its outputs, so all checks of functions
apply: failures are shrunk, and the law `split` uses the program's own state.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from refssm._declaration.implements import Declaration
from refssm._declaration.layout import canonical, sizes_of
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.implementation import Found, Offer
from refssm.conformance.calling.one_call import InProcess, Outcome
from refssm.conformance.exchange.call import described
from refssm.conformance.exchange.files import FileArrays
from refssm.conformance.exchange.running import Ended, Runner, answer
from refssm.conformance.number_types import number_type
from refssm.conformance.usage_error import UsageError

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
        self._kind = number_type(how.get("dtype") or np.result_type(*(arrays or [float])))
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
