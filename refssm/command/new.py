"""`refssm new`: write a plug-in file that runs, as a place for a kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

IMPORTS = {
    "numpy": "",
    "torch": "import torch\n",
    "jax": "import jax.numpy as jnp\nimport numpy as np\n",
    "cupy": "import cupy\n",
}
# calls the reference on the host until the author inserts a kernel
OUT = {
    "numpy": "{}",
    "torch": "{}.numpy(force=True)",
    "jax": "np.asarray({})",
    "cupy": "cupy.asnumpy({})",
}
BACK = {
    "numpy": "{}",
    "torch": "torch.from_numpy({}){device}",
    "jax": "jnp.asarray({})",
    "cupy": "cupy.asarray({})",
}


def new_plugin(
    operator: Annotated[str, typer.Argument(help="A name from `refssm list`.")],
    framework: Annotated[str, typer.Option(help="numpy, torch, jax or cupy.")] = "numpy",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else OPERATOR_FRAMEWORK.py.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a plug-in file that runs, with a place for your kernel."""
    from refssm._implements import FRAMEWORKS
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.usage_error import UsageError

    op = operator_named(operator)
    if framework not in FRAMEWORKS:
        raise UsageError(f"unknown framework {framework!r}; wanted one of {', '.join(FRAMEWORKS)}")
    path = output or Path(f"{op}_{framework}.py")
    if os.path.lexists(path) and not force:
        raise UsageError(f"{path} already exists; --force overwrites it")
    if os.path.lexists(path) and not os.path.isfile(path):  # writing to a pipe would wait
        raise UsageError(f"{path}: wanted a file to write, got something else")
    try:
        path.write_text(plugin(op, framework, path.name), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', error)}") from None
    typer.echo(f"{path} written; next: refssm verify {path}")


def plugin(op, framework: str, file: str) -> str:
    """The text of the plug-in file."""
    from refssm.command.catalog import layout
    from refssm.conformance.checks.checks import PROFILES, default_types

    own = "" if framework == "numpy" else f'    framework="{framework}",\n'
    single = default_types(op, PROFILES["quick"])[0]
    arguments = ", ".join([*op.inputs, *(["*"] if op.static else []), *op.static])
    formula = (op.reference.__doc__ or "").strip().splitlines()[0]
    return (
        f'"""{op} in {framework}: `refssm verify {file}`."""\n\n'
        f"{IMPORTS[framework]}{chr(10) * bool(IMPORTS[framework])}"
        "import refssm\nfrom refssm.testing import implements\n\n\n"
        f'@implements(\n    "{op}",\n{own}'
        f'    dtypes=("{single}",),  # the types that it supports\n'
        f'    layout="{layout(op)}",  # the order of its axes\n)\n'
        f"def {op}({arguments}):\n"
        f'    """{formula}"""\n'
        f"{_body(op, framework)}"
    )


def _body(op, framework: str) -> str:
    device = "".join(f".to({first}.device)" for first in [*op.inputs][:1])
    hosts = ", ".join(
        [*(OUT[framework].format(n) for n in op.inputs), *(f"{n}={n}" for n in op.static)]
    )
    back = [BACK[framework].format(y, device=device) for y in op.outputs]
    if framework == "numpy":
        returned = f"    return refssm.{op}({hosts})\n"
    else:
        returned = (
            f"    {', '.join(op.outputs)} = refssm.{op}({hosts})\n    return {', '.join(back)}\n"
        )
    return (
        f"    # this calls the reference, so that the file runs: put your kernel here\n{returned}"
    )
