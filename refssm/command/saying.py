"""Texts of one line: the sentence of a run without a result, and what must fit a width.

A group of subcommands says one too: the nearest name where there is none of a name.
"""

import typer
from typer.core import TyperGroup

from refssm._declaration.names import did_you_mean

LONGEST, END = 1000, 300  # characters: names and contents of files can be very long


def say(sentence: str) -> None:
    """Print a sentence to standard error, in one line without control characters."""
    line = " ".join(sentence.split())
    if len(line) > LONGEST:  # a long name stands first, the reason last
        line = f"{line[: LONGEST - END]}…{line[-END:]}"
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    if len(line) > LONGEST + 1:  # escapes
        line = f"{line[:LONGEST]}…"
    typer.echo(f"refssm: {line}", err=True)


def cut(text: str, width: int) -> str:
    """The text, cut to a width."""
    return text if len(text) <= width else f"{text[: max(1, width) - 1]}…"


class CommandGroup(TyperGroup):
    """Subcommands; an unknown one is a usage error with the nearest name, or with all names."""

    def resolve_command(self, ctx, args):
        """The subcommand that the first word names."""
        from refssm.conformance.usage_error import UsageError

        known = [name for name in self.list_commands(ctx) if name != args[0]]
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known) or f"wanted one of {', '.join(known)}"
            raise UsageError(f"`{ctx.command_path}` has no command `{args[0]}`; {hint.strip()}")
        return super().resolve_command(ctx, args)
