"""`refssm new`: write a plug-in file or a program that runs, as a place for a kernel.

The CI files, also of `refssm doctor --ci`, install refssm, compile, and judge.
"""

import os
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

SERVICES = ("github", "gitlab")
PATHS = {"github": ".github/workflows/refssm.yml", "gitlab": "refssm.gitlab-ci.yml"}
# PyTorch without CUDA: such a machine has no card, and the other one has gigabytes
NEEDS = {
    "torch": "torch --extra-index-url https://download.pytorch.org/whl/cpu",
    "jax": "jax",
    "cupy": "cupy-cuda13x[ctk]",
    "pytest": "pytest",
}
NEXT = {
    "github": "commit it: it runs at each push",
    "gitlab": "commit it, and in .gitlab-ci.yml write: include: refssm.gitlab-ci.yml",
}
GITHUB = """\
# Judges the kernels of this repository by refssm at each push.
name: refssm
on: [push, pull_request]
jobs:
  verify:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
{steps}"""
GITLAB = """\
# Judges the kernels of this repository by refssm at each push.
refssm:
  image: {image}
  script:
{steps}"""
IMAGES = {"cpp": "python:3.12", "rust": "rust:1-bookworm", "js": "node:22-bookworm"}
# images of Rust and node have Debian's Python without pip
PYTHON = ["apt-get update -qq && apt-get install -qqy python3-venv", "python3 -m venv .refssm-venv",
          ". .refssm-venv/bin/activate"]  # fmt: skip


def workflow_place(service: str, source: str) -> Path:
    """The path of a CI file; UsageError for an unknown service."""
    from refssm.conformance.usage_error import UsageError

    if service not in SERVICES:
        raise UsageError(f"unknown CI {service!r}; wanted one of {', '.join(SERVICES)}")
    if not source:
        raise UsageError(
            "--ci wants --source, what pip installs refssm from: a folder of your repository or an "
            "address, as git+https://…; refssm is on no package index"
        )
    return Path(PATHS[service])


def workflow(service: str, source: str, framework: str, commands: list[str], *also: str) -> str:
    """The text of a CI file; `source` is what pip installs refssm from, `also` what it needs."""
    needs = [NEEDS[name] for name in (framework, *also) if name in NEEDS]
    commands = [" ".join(["pip install", f"'{source}'", *needs]), *commands]
    if service == "github":
        return GITHUB.format(steps="".join(f"      - run: {_quoted(c)}\n" for c in commands))
    image = IMAGES.get(framework, "python:3.12")
    before = PYTHON if framework in ("rust", "js") else []
    lines = "".join(f"    - {_quoted(command)}\n" for command in [*before, *commands])
    return GITLAB.format(image=image, steps=lines)


def _quoted(command: str) -> str:
    """A command as a YAML string."""
    return "'" + command.replace("'", "''") + "'"


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
    framework: Annotated[
        str, typer.Option(help="numpy, torch, jax, cupy; or a program in cpp, js, rust.")
    ] = "numpy",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; else OPERATOR_FRAMEWORK.py.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    ci: Annotated[
        str, typer.Option("--ci", help="Also write a file that judges it in CI: github, gitlab.")
    ] = "",
    source: Annotated[
        str, typer.Option(help="For --ci: what pip installs refssm from, a folder or an address.")
    ] = "",
) -> None:
    """Write a plug-in file or a program, with a place for your kernel; and a CI file."""
    from refssm._declaration.implements import FRAMEWORKS
    from refssm.command import foreign
    from refssm.conformance.calling.finding import operator_named
    from refssm.conformance.usage_error import UsageError

    op = operator_named(operator)
    known = (*FRAMEWORKS, *foreign.ENDINGS)
    if framework not in known:
        raise UsageError(f"unknown framework {framework!r}; wanted one of {', '.join(known)}")
    path = output or Path(f"{op}_{framework}.{foreign.ENDINGS.get(framework, 'py')}")
    path = Path(path.name) if path.parent == Path() else path
    commands = [f"refssm verify {quote(str(path))}"]
    if framework in foreign.ENDINGS:
        text = foreign.program(op, framework, str(path))
        built, verified = (
            foreign.built(framework, str(path)),
            foreign.verified(op, framework, str(path)),
        )
        commands = [built] * bool(built) + [verified]
    else:
        text = plugin(op, framework, path.name)
    texts = {path: text}
    if ci:
        texts[workflow_place(ci, source)] = workflow(ci, source, framework, commands)
    for place in texts:
        if os.path.lexists(place) and not force:
            raise UsageError(f"{place} already exists; --force overwrites it")
        if os.path.lexists(place) and not os.path.isfile(place):  # writing to a pipe would wait
            raise UsageError(f"{place}: wanted a file to write, got something else")
    for place, content in texts.items():
        write(place, content)
    typer.echo(f"{path} written; next: {' && '.join(commands)}")
    if ci:
        typer.echo(f"{workflow_place(ci, source)} written; {NEXT[ci]}")


def write(path: Path, text: str) -> None:
    """Write a file; UsageError if that is impossible. Folders of CI files are made."""
    from refssm.conformance.usage_error import UsageError

    try:
        if path.parts[:1] == (".github",):
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', error)}") from None


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
