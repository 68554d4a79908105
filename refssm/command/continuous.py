"""The CI files of `refssm new --ci` and `refssm doctor --ci`: install refssm, compile, judge."""

from __future__ import annotations

from pathlib import Path

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


def place(service: str, source: str) -> Path:
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


def written(service: str, source: str, framework: str, commands: list[str], *also: str) -> str:
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
