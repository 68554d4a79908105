"""The command `refssm`: one file per subcommand; each imports its satellite packages when called.

Exit codes: 0 pass; 1 a check failed, was inaccurate or ended in an error; 2 interrupted; 3 a bug of
refssm outside of a check; 4 usage error, or a file that cannot be written; 5 nothing left to check.
"""

import errno
import os
import sys

from refssm.command import terminal

CTRL_C = 130  # newer versions of Typer return this for a KeyboardInterrupt
INTERRUPTED, INTERNAL, USAGE = 2, 3, 4  # 1 and 5 are results of `verify`
# of the machine, not of refssm: no room, no right, no more open files or memory
REFUSED = ("ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENAMETOOLONG", "EMFILE", "ENFILE")
REFUSED += ("ENOMEM", "EIO", "ELOOP")


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit with its code; never with a traceback."""
    terminal.hold()
    terminal.prepare()
    result = code(arguments)
    terminal.end()
    if told := terminal.lost():
        from refssm.command.saying import say

        say(told)
    sys.exit(result)


def code(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    terminal.encode()
    try:
        return _run(arguments)
    except BaseException as error:
        return _code_of(error)


def _run(arguments: list[str] | None) -> int:
    """Import the subcommands and run one; not before: Ctrl-C during this import is one sentence."""
    from refssm.command.application import app

    result = app(args=arguments, prog_name="refssm", standalone_mode=False)
    if result == CTRL_C:
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _code_of(error: BaseException) -> int:
    """The exit code of a run that raised, after its sentence."""
    import typer

    from refssm.command.saying import say

    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        say("interrupted")
        return INTERRUPTED
    if not isinstance(error, Exception):
        raise error
    from refssm.conformance.usage_error import UsageError

    told = getattr(error, "format_message", None)  # Typer's usage errors
    if isinstance(error, UsageError) or told:
        say(told() if told else str(error))
        return USAGE
    if refused := _refused(error):
        say(refused)
        return USAGE
    if os.environ.get("REFSSM_DEBUG"):
        raise error
    text = " ".join(f"{type(error).__name__}: {error}".split())
    say(f"this is a bug of refssm: {text}; please report it; REFSSM_DEBUG=1 shows the traceback")
    return INTERNAL


def _refused(error: Exception) -> str:
    """What the machine refused, in a sentence; "" if the error is another one."""
    if not isinstance(error, OSError):
        return ""
    try:
        os.getcwd()
    except OSError:
        return "the working directory was removed: change to another one"
    if "temporary directory" in str(error):  # all of them are full: tempfile has no class for it
        return f"{error.strerror}"
    if errno.errorcode.get(error.errno or 0) not in REFUSED:
        return ""
    return f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}"
