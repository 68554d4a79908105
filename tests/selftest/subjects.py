"""Which clones of public repositories a folder has: `make subjects FOLDER=…`."""

import subprocess
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from typing import Annotated

import typer

from refssm.subjects import clones


def commit_of(path: Path) -> str:
    """The commit that is checked out, "v" and the version of a source package, or ""."""
    package = path / "PKG-INFO"
    if package.is_file() and not (path / ".git").exists():
        return f"v{message_from_string(package.read_text(encoding='utf-8'))['Version']}"
    command = ["git", "-C", str(path), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return done.stdout.strip() if done.returncode == 0 and (path / ".git").exists() else ""


def told(folder: Path) -> Iterator[str]:
    """A line for each repository: whether its clone is in `folder`, and at which commit."""
    width = max(map(len, clones.CLONES))
    for name, clone in clones.CLONES.items():
        path = folder / clone.name
        if not path.is_dir():
            get = f"git clone https://github.com/{clone.repository} {path}"
            yield f"{name:{width}}  missing   {get} && git -C {path} checkout {clone.commit}"
            continue
        here, judged = commit_of(path), clone.commit
        state = "as judged" if here == judged else f"at {here[:10] or 'no commit'}"
        yield f"{name:{width}}  there     {state}; judged at {judged[:10]}"


def main(
    folder: Annotated[str, typer.Argument(help="The folder of the clones.")] = "",
) -> None:
    """Say which clones are there, which are missing, and at which commit each was judged."""
    place = Path(folder).expanduser().resolve()
    if not folder or not place.is_dir():
        raise typer.BadParameter("give the folder of the clones: make subjects FOLDER=~/clones")
    for line in told(place):
        typer.echo(line)
    typer.echo(f"judge one: {clones.VARIABLE}={place} refssm verify --subject NAME")


if __name__ == "__main__":
    typer.run(main)
