"""Texts of one line: the sentence of a run without a result, and what must fit a width.

A group of subcommands says one too: the nearest name where there is none of a name. Alone it
prints its help, with whole sentences.
"""

from collections.abc import Mapping, Sequence

import typer
from typer.core import TyperCommand, TyperGroup

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


class _InSections:
    """A help with titles, and examples at its end."""

    sections: Mapping[str, Sequence[str]] = {}  # titles, and what is below each, by name
    examples: Sequence[str] = ()  # lines

    def format_epilog(self, ctx, formatter):
        """The examples, line by line as they are typed."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))


class OptionsInSections(_InSections, TyperCommand):
    """A command with many options."""

    def format_options(self, ctx, formatter):
        """Each option below the title of its section."""
        told = {p.name: p.get_help_record(ctx) or ("", "") for p in self.get_params(ctx)}
        for title, names in self.sections.items():
            with formatter.section(title):
                rows = (told[name] for name in names)
                formatter.write_dl([(n.replace("list[str]", "str"), text) for n, text in rows])


class CommandGroup(_InSections, TyperGroup):
    """Subcommands; an unknown one is a usage error with the nearest name, or with all names."""

    def parse_args(self, ctx, args):
        """The arguments; without any, the help is printed."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit
        return super().parse_args(ctx, args)

    def format_commands(self, ctx, formatter):
        """Each subcommand with its whole sentence, below the title of its section."""
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            with formatter.section(title):
                formatter.write_dl([(n, c.get_short_help_str(LONGEST)) for n, c in commands if c])

    def resolve_command(self, ctx, args):
        """The subcommand that the first word names."""
        from refssm.conformance.usage_error import UsageError

        known = [name for name in self.list_commands(ctx) if name != args[0]]
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known) or f"wanted one of {', '.join(known)}"
            raise UsageError(f"`{ctx.command_path}` has no command `{args[0]}`; {hint.strip()}")
        return super().resolve_command(ctx, args)
