"""What refssm needs for its tests on a card: beyond the packages in a file, or here.

`.ci/gpu --wheels NAMES` gives a file with a name on each line, as `pip list --format=freeze` writes
them; what follows a name is not read. The program reads the requirements of what is installed where
it runs, which should be where `make test` has run. Without a file it says what is missing here.
"""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("test", "gpu")
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}


def plain(name: str) -> str:
    """The name of a package in one spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement: str) -> str:
    """The package of a requirement, or of a line of `pip list --format=freeze`."""
    return plain(re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0])


def applies(requirement: str) -> bool:
    """Whether a requirement is one on Linux with this Python, without extras."""
    # not above: where the tests run on a card it may be missing; where `make test` has run, pytest
    # has brought it
    from packaging.requirements import Requirement

    marker = Requirement(requirement).marker
    return marker is None or marker.evaluate(LINUX)


def needed(requirements: list[str], there: set[str]) -> set[str]:
    """Packages that are not there, and what they need in turn."""
    found: set[str] = set()
    left = [named(r) for r in requirements if applies(r)]
    while left:
        name = left.pop()
        if name in there or name in found or name == "refssm":
            continue
        found.add(name)
        try:
            left += [named(r) for r in requires(name) or () if applies(r)]
        except PackageNotFoundError:
            told = f"{name} is not installed here, so what it needs is unknown"
            print(told, file=sys.stderr)  # noqa: T201
    return found


def main(arguments: list[str]) -> int:
    """Print them in one line; without a file, say what is missing here and return 1."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    if arguments:
        extras = [requirement for extra in EXTRAS for requirement in optional[extra]]
        lines = Path(arguments[0]).read_text(encoding="utf-8").splitlines()
        there = {named(line) for line in lines}
        print(*sorted(needed([*project["dependencies"], *extras], there)))  # noqa: T201
        return 0
    here = {plain(found.metadata["Name"]) for found in distributions()}
    missing = sorted({named(r) for r in project["dependencies"]} - here)
    if missing:
        print(f"not installed here, carry their wheels: {' '.join(missing)}")  # noqa: T201
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
