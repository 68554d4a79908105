"""The CI files of `refssm new --ci`: install refssm, compile, judge."""

from __future__ import annotations

SERVICES = ("github", "gitlab")
PATHS = {"github": ".github/workflows/refssm.yml", "gitlab": "refssm.gitlab-ci.yml"}
NEEDS = {"torch": "torch", "jax": "jax", "cupy": "cupy-cuda13x[ctk]"}
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


def written(service: str, source: str, framework: str, commands: list[str]) -> str:
    """The text of a CI file; `source` is what pip installs refssm from."""
    install = " ".join(["pip install", f"'{source}'", *filter(None, [NEEDS.get(framework)])])
    commands = [install, *commands]
    if service == "github":
        return GITHUB.format(steps="".join(f"      - run: {_quoted(c)}\n" for c in commands))
    image = IMAGES.get(framework, "python:3.12")
    before = PYTHON if framework in ("rust", "js") else []
    lines = "".join(f"    - {_quoted(command)}\n" for command in [*before, *commands])
    return GITLAB.format(image=image, steps=lines)


def _quoted(command: str) -> str:
    """A command as a YAML string."""
    return "'" + command.replace("'", "''") + "'"
