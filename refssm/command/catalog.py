"""`refssm show`: print an operator from its declaration."""

from __future__ import annotations

from typing import Annotated

import typer


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
