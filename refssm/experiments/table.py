"""What an experiment says in numbers: columns, and one row for each thing that was measured."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """Texts only: the first column says what a row is, the others hold its numbers."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def told(value: float, least: float = 0.0) -> str:
    """Three digits, or that it is less than `least`, below which rounding decides."""
    return f"< {least:.0e}" if value < least else f"{value:.3g}"
