"""`refssm list`: every operator by family, one line each, or as JSON."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Annotated

import typer

from refssm.command.saying import cut

PIPE = 100  # columns where the output is not a terminal
SIGNATURE = 36  # columns: longer ones are cut, `refssm show` prints them
SCHEMA = 1  # changes when a key of the document changes its meaning


def list_operators(
    words: Annotated[
        list[str] | None,
        typer.Argument(help="Only operators with these words in name, family or other names."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Print every operator by family, with its signature and other names."""
    from refssm.catalog import judged
    from refssm.conformance.doctor.search import search
    from refssm.conformance.usage_error import UsageError

    wanted = [word.lower() for word in words or ()]
    found = [op for op in judged() if _has(op, wanted)]
    if not found:
        near = ", ".join(str(hit.op) for hit in search(" ".join(wanted)).hits[:3])
        hint = f"; the nearest are {near}" if near else ""
        raise UsageError(f"no operator has {' '.join(map(repr, wanted))} in its names{hint}")
    if as_json:
        typer.echo(json.dumps(document(found), indent=2, ensure_ascii=False))
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE
    families = dict.fromkeys(op.family for op in found)
    for number, family in enumerate(families):
        typer.echo(f"{chr(10) * bool(number)}{family}")
        for line in _lines([op for op in found if op.family == family], width):
            typer.echo(line)


def document(ops) -> dict:
    """The list for programs: see docs/configuration.md."""
    from refssm._declaration.layout import canonical

    keys = ("name", "family", "signature", "citation")
    return {
        "schema": SCHEMA,
        "operators": [
            {key: getattr(op, key) for key in keys}
            | {
                "inputs": [*op.inputs],
                "parameters": [*op.static],
                "outputs": [*op.outputs],
                "layout": str(canonical(op)),
                "formula": (op.reference.__doc__ or "").strip().partition("\n")[0],
                "tags": [*op.tags],
                "gradient": op.differentiable,
            }
            for op in ops
        ],
    }


def _has(op, words: list[str]) -> bool:
    """True if each word is a part of the name, the family or a tag."""
    names = [name.lower() for name in (op.name, op.family, *op.tags)]
    return all(any(word in name for name in names) for word in words)


def _lines(ops, width: int) -> list[str]:
    """Aligned lines of one family: name, signature, what others call it."""
    name = max(len(op.name) for op in ops)
    signature = min(SIGNATURE, max(len(op.signature) for op in ops))
    left = width - name - signature - 4  # two spaces before the name, one after it and the next
    shown = [(op.name, cut(op.signature, signature), _told(op, left)) for op in ops]
    return [f"  {n:<{name}} {s:<{signature}} {told}".rstrip() for n, s, told in shown]


def _told(op, width: int) -> str:
    """As many of the tags as fit."""
    told = op.tags[0]
    for tag in op.tags[1:]:
        if len(told) + 2 + len(tag) > width:
            break
        told += f", {tag}"
    return cut(told, width)
