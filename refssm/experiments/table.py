"""What an experiment says in numbers: columns, and one row for each thing that was measured."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """Texts only: the first column says what a row is, the others hold its numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(value: float) -> str:
    """Three digits; 1 for 1, and no exponent where none is needed."""
    return f"{value:.3g}"
