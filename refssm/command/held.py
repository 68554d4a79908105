"""Objects that run the implementations to judge."""

from __future__ import annotations

import shlex
from typing import Any


def today(target: str, operator: str = "") -> str:
    """The target; one that has a plug-in's former name gets today's name, and a sentence says so.

    `operator`: that of a saved failure, whose target may name no function.
    """
    from refssm.command.saying import say
    from refssm.subjects import former

    now = former.now(target, operator)
    if now != target:
        say(f"{target} is now {now}")
    return now


def worker_of(target, told, output=None, *, name, timeout, in_process) -> Any:
    """Runs a target's implementations: in a child process or here, or from a saved result."""
    from refssm.conformance.calling.recorded import Recorded
    from refssm.conformance.calling.worker import InProcess, Worker
    from refssm.conformance.exchange import program
    from refssm.conformance.running.settings import FOLDER

    if output is not None:
        return Recorded(name, output, {**told.get("usual", {}), **told}.get("layout", ""))
    if target.startswith(program.PREFIX):
        (command,) = shlex.split(target.removeprefix(program.PREFIX))
        usual = told.get("usual", {})  # the file's framework and device apply to functions only
        usual = {k: usual[k] for k in ("vjp", *program.TOLD) if k in usual}
        own = {k: v for k, v in told.items() if k != "usual"}
        return program.Programs(command, name, timeout, usual | own)
    if in_process:
        return InProcess.at(target, name, told, FOLDER)
    return Worker(target, name, timeout, told)


def older_of(target, told, **how):
    """The same for an older implementation; a null context if there is none."""
    from contextlib import nullcontext

    if not target:
        return nullcontext()
    return worker_of(target, told | {"silent": True}, **how)
