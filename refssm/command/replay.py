"""`refssm replay`: judge one stored failure again, by the same check, with the same inputs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from refssm.command import options as o
from refssm.command import terminal

FAILED, NOTHING = 1, 5


def replay(
    failure: Annotated[Path, typer.Argument(help="The file in the line `again:`, .refssm/….npz")],
    target: Annotated[
        str, typer.Argument(help="file.py or module; else the target that failed.")
    ] = "",
    exec_: o.Exec = "",
    json: o.Json = False,
    timeout: o.Timeout = 60.0,
    in_process: o.InThisProcess = False,
) -> int:
    """Judge one saved failure again; the exit code is 1 while it fails, 0 once it passes."""
    from refssm.command.checked import today
    from refssm.command.verify import older_of, worker_of
    from refssm.conformance.calling.recorded import stored
    from refssm.conformance.diagnosis import script
    from refssm.conformance.exchange import program
    from refssm.conformance.judging.certificate import refuse_if_wrong
    from refssm.conformance.report import lines, records
    from refssm.conformance.running.replay import again
    from refssm.conformance.running.settings import Session, Settings
    from refssm.conformance.usage_error import UsageError

    given = stored(failure)
    kept = script.told(failure, given)
    if exec_ and target:
        raise UsageError("--exec judges one program: give no target")
    target = program.target(exec_) if exec_ else target or kept["target"]
    target, against = (today(t, kept["operator"]) for t in (target, kept["against"]))
    how = {"name": kept["as"] or None, "timeout": timeout, "in_process": in_process}
    where = script.where_of(kept, failure)
    settled = {"seed": kept["seed"], "profile": kept["profile"]}
    try:
        refuse_if_wrong()
        with (
            worker_of(target, kept["told"], **how) as worker,
            older_of(against, kept["told"], **how) as older,
        ):
            asked = Settings(profile="thorough", where=where, older=against, folder=None)
            session = Session(worker, target, asked, older)
            result = again(session, failure, given, kept)
    except KeyboardInterrupt:
        if json:
            with terminal.held():
                typer.echo(records.document([], interrupted=True, **settled))
        raise
    with terminal.held():
        if json:
            typer.echo(records.document([result], **settled))
        else:
            lines.show(result, lines.console(sys.stdout))
    return FAILED if result.failed else 0 if result.verdict == "pass" else NOTHING
