"""The table `[tool.refssm]` of an author's pyproject.toml: defaults for `refssm verify` and pytest.

Values are validated before anything runs; an error is one sentence with the file, the key, the
wanted and the actual value.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from refssm._declaration.names import did_you_mean
from refssm.conformance.file_errors import SETTINGS, contents
from refssm.conformance.usage_error import UsageError, shown

FILE = "pyproject.toml"
# an author's declaration wins
DECLARED = ("framework", "device", "layout", "vjp", "ftz", "deterministic", "kinds")
# tomllib's time grows with the square of the number of parts: 100,000 take hours
MANY_PARTS = re.compile(
    r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}"""
)


@dataclass(frozen=True)
class Config:
    """The validated table of one file; empty without a file."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self):
        return os.path.relpath(self.path) if self.path else ""

    def __bool__(self):
        return bool(self.values)

    def get(self, key: str, usual: Any = None) -> Any:
        """The value of a key, or `usual`."""
        return self.values.get(key, usual)

    @property
    def declared(self) -> dict:
        """Declarations for functions whose author declares nothing."""
        return {key: self.values[key] for key in DECLARED if key in self.values}


def nearest(start: Path) -> Config:
    """The first table [tool.refssm] in the pyproject.toml of `start` or a folder above it."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if os.path.lexists(folder / FILE):
            table = _table(folder / FILE)
            if table is not None:
                return _checked(folder / FILE, table)
    return Config()


def named(path: Path) -> Config:
    """The table in the file `path`; UsageError if it has none."""
    table = _table(path)
    if table is None:
        raise UsageError(f"{_told(path)} has no table [tool.refssm]")
    return _checked(path, table)


def document(path: Path) -> dict:
    """A parsed TOML file; UsageError if it cannot be read."""
    name = _told(path)
    try:
        text = contents(path, SETTINGS).decode()
        if MANY_PARTS.search(text):
            raise UsageError(f"{name}: not valid TOML: a key has more than 100 parts")
        return tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: not valid TOML: byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: not valid TOML: {error}") from None


def _table(path: Path) -> Any:
    tool = document(path).get("tool", {})
    return tool.get("refssm") if isinstance(tool, dict) else None


def _checked(path: Path, table: Any) -> Config:
    # only here: without a table nothing waits for the imports of the judge
    from refssm.conformance.project.keys import KEYS, RefusedValue

    if not isinstance(table, dict):
        raise UsageError(f"{_told(path)}: [tool.refssm]: wanted a table, got {shown(table)}")
    values = {}
    for key, value in table.items():
        if key not in KEYS:
            hint, keys = did_you_mean(key, KEYS), ", ".join(KEYS)
            raise UsageError(
                f"{_told(path)}: [tool.refssm]: unknown key {shown(key)}; {hint}wanted {keys}"
            )
        wanted, read = KEYS[key]
        try:
            values[key] = read(value)
        except RefusedValue as refused:
            raise UsageError(
                f"{_told(path)}: [tool.refssm] {key}: wanted {wanted}, got {shown(value)}{refused}"
            ) from None
    folder = path.resolve().parent
    if "targets" in values:
        values["targets"] = tuple(_from_here(folder, target) for target in values["targets"])
    if "known-failures" in values:
        values["known-failures"] = os.path.relpath(folder / values["known-failures"])
    return Config(path.resolve(), values)


def _told(path: Path) -> str:
    return os.path.relpath(path)


def _from_here(folder: Path, target: str) -> str:
    """A target relative to the current folder, given one relative to `folder`; not for modules."""
    mark = "::" if "::" in target else ":"
    place, mark, function = target.partition(mark)
    if place.endswith(".py") or "/" in place:
        place = os.path.relpath(folder / place)
    return f"{place}{mark}{function}"
