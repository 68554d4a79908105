"""What the user asked for: names of operators, and files or modules of their own."""

import difflib
import os
from collections.abc import Iterable
from importlib.util import find_spec

from refssm._declaration.operator import Operator
from refssm.bench.programs.program import YOURS, Program
from refssm.bench.work.sizes import default_operators
from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import every, looking
from refssm.conformance.usage_error import UsageError


def asked(
    targets: Iterable[str], which: str, device: str = ""
) -> list[tuple[Operator, list[Program]]]:
    """The operators to time, in the order asked for, each with the user's own functions."""
    named = {op.name: op for op in OPERATORS}
    wanted: dict[str, list[Program]] = {}
    for target in targets:
        if target in named:
            wanted.setdefault(target, [])
            continue
        for program in _own(target):
            wanted.setdefault(program.op.name, []).append(program)
    if not wanted:
        return [(op, []) for op in default_operators(which, device)]
    return [(named[name], programs) for name, programs in wanted.items()]


def _own(target: str) -> list[Program]:
    """The implementations in a user's file or module."""
    if not _may_be_code(target):
        names = [op.name for op in OPERATORS]
        near = difflib.get_close_matches(target, names, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UsageError(
            f"`{target}` is neither an operator nor a file or module; {hint}"
            "`refssm list` prints all operators"
        )
    with looking(target):
        return [Program(own, YOURS, own, found) for own, found in every(target)]


def _may_be_code(target: str) -> bool:
    """True if it looks like a file, or if there is a module of that name."""
    path = target.partition("::")[0]
    if path.endswith(".py") or "/" in path or os.path.isfile(path) or "." in path or ":" in path:
        return True
    try:
        return bool(path) and find_spec(path) is not None
    except (ValueError, ModuleNotFoundError):
        return False
