"""`refssm find`: the operators that fit some words: a model, a paper, a function's name."""

from __future__ import annotations

from typing import Annotated

import typer

WIDTH = 100
UNKNOWN = 4  # the exit code if nothing fits


def find_operators(
    words: Annotated[
        list[str], typer.Argument(help='Words, as "s4d log dt pairs" or selective_scan_fn.')
    ],
) -> int:
    """Find an operator by words: a model, a paper, the name of a public function."""
    from refssm.command.saying import cut, say
    from refssm.conformance.doctor.search import search

    query = " ".join(words)
    found = search(query)
    for hit in found.hits:
        typer.echo(f"{cut(hit.op.call, WIDTH)}\n    {cut(hit.why, WIDTH - 4)}")
    told = ", ".join(f"`{word}`" for word in found.missing)
    near = f"; the nearest words are {', '.join(found.near)}" if found.near else ""
    if found.hits:
        if told:
            typer.echo(f"no operator has {told}{near}")
        return 0
    say(f"no operator fits {told or f'`{query}`'}{near or '; `refssm list` prints all of them'}")
    return UNKNOWN
