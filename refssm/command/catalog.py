"""`refssm list`, `refssm show` and `refssm find`: the operators.

All by family, one line each, or as JSON; one printed from its declaration; those that fit some
words: a model, a paper, a function's name.
"""

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


def show_operator(
    operator: Annotated[str, typer.Argument(help="A name from `refssm list`.")],
) -> None:
    """Print an operator's formula, layout, domains and checks, and a plug-in."""
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.checks.checks import PROFILES, checks_of, default_types
    from refssm.presets.catalog import presets_of

    op = operator_named(operator)
    doc = op.reference.__doc__ or ""
    typer.echo(f"{op.call}\n\n{_unindented(doc)}\n")
    typer.echo(f"layout    {layout(op)}")
    typer.echo(f"traits    {', '.join(sorted(op.traits)) or 'none'}")
    typer.echo(f"contract  {op.contract.words}")
    typer.echo(f"source    [{op.citation}]")
    typer.echo(f"made with {roles(op)}\n")
    for name, domain in {**op.inputs, **op.parameters}.items():
        typer.echo(f"{name:<9} {domain.summary}")
    if presets := presets_of(op):
        typer.echo("\npresets, what models start from: refssm verify TARGET --preset NAME")
        for preset in presets:
            typer.echo(f"  {preset.name:<18} {preset.summary}")
    profile = PROFILES["default"]
    checks = checks_of(op, profile, default_types(op, profile), vjp=op.differentiable)
    typer.echo(f"\nchecks    {', '.join(f'{c.name}[{c.dtype}]' for c in checks)}\n")
    typer.echo(f"{skeleton(op)}\n\n# for tensors: refssm new {op} --framework torch (jax, cupy)")


LIBRARIES = {"reference": "NumPy", "jit": "Numba", "gpu": "CuPy"}


def roles(op) -> str:
    """Where the operator's functions are, and what they are made with."""
    from refssm._declaration.operator import PACKAGES

    has = (role for role in LIBRARIES if role not in op.lacks)
    return ", ".join(f"{LIBRARIES[role]} (from {PACKAGES[role]}.{op.family})" for role in has)


def layout(op) -> str:
    """The canonical layout of each argument: batch axes, then core dimensions."""
    from refssm._declaration.layout import canonical

    return str(canonical(op))


def skeleton(op) -> str:
    """A plug-in file as a starting point."""
    arguments = ", ".join([*op.inputs, *(["*"] if op.static else []), *op.static])
    cotangents = ", ".join(f"d{y}" for y in op.outputs)
    gradients = ", ".join(f"d{name}" for name in op.inputs)
    forward = (
        "# save as my_ops.py, then run `refssm verify my_ops.py`\n"
        f"def {op}({arguments}):\n    ...  # return {', '.join(op.outputs)}"
    )
    if not op.differentiable:
        return forward
    return (
        f"{forward}\n\n\ndef {op}_vjp({cotangents}, {arguments}):  # optional, judged if present\n"
        f"    ...  # return {gradients}"
    )


def _unindented(doc: str) -> str:
    import inspect

    return inspect.cleandoc(doc)


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
    told = ", ".join(f"`{word}`" for word in found.missing)
    near = f"; the nearest words are {', '.join(found.near)}" if found.near else ""
    if not found.fits:
        lacking = f": none has {told}{near}" * bool(told)
        follow = "the nearest follow" if found.hits else "`refssm list` prints all of them"
        say(f"no operator fits `{query}`{lacking}; {follow}")
    for hit in found.hits:
        typer.echo(f"{cut(hit.op.call, WIDTH)}\n    {cut(hit.why, WIDTH - 4)}")
    if not found.fits:
        return UNKNOWN
    if told:
        typer.echo(f"no operator has {told}{near}")
    return 0
