"""A group of subcommands that names the nearest one where there is none of a name."""

from __future__ import annotations

from typer.core import TyperGroup

from refssm._declaration.names import did_you_mean


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
