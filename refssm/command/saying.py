"""Texts of one line: the sentence of a run without a result, and what must fit a width."""

import typer

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
