"""Print the one sentence of a run without a result."""

import typer

LONGEST = 1000  # characters: names and contents of files can be very long


def say(sentence: str) -> None:
    """Print a sentence to standard error, in one line without control characters."""
    line = " ".join(sentence.split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[: LONGEST + 1])
    typer.echo(f"refssm: {line if len(line) <= LONGEST else line[:LONGEST] + '…'}", err=True)
