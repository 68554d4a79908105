"""The numbers of an experiment: columns, and one row per measured object."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """A table of texts: the first column names a row, the others have its numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(value: float, least: float = 0.0) -> str:
    """Three digits, or "< least" if smaller, where only rounding errors remain."""
    return f"< {least:.0e}" if value < least else f"{value:.3g}"
