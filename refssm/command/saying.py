"""The one sentence of a run that comes to nothing."""

import typer

LONGEST = 1000  # of it: names, and what stands in files, have any length


def say(sentence: str) -> None:
    """A sentence on the standard error, in one line without what a terminal would obey."""
    line = " ".join(sentence.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[: LONGEST + 1])
    typer.echo(f"refssm: {line if len(line) <= LONGEST else line[:LONGEST] + '…'}", err=True)
