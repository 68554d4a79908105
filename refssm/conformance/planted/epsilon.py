"""Small numbers that a wrong program adds: planted with one of them, found with any."""

from __future__ import annotations

from collections.abc import Callable


class Epsilon:
    """A wrong program with a small number, `program_of(number)`; `at` takes another number."""

    def __init__(self, number: float, program_of: Callable[[float], Callable]):
        self.number, self.program_of = number, program_of
        self.program = program_of(number)

    def __call__(self, right, *args, **statics):
        return self.program(right, *args, **statics)

    def after(self, change: Callable[[Callable], Callable]) -> Epsilon:
        """The programs that `change` makes of these."""
        return Epsilon(self.number, lambda number: change(self.program_of(number)))

    def at(self, number: float) -> Epsilon:
        """The same with another number."""
        return Epsilon(number, self.program_of)


def in_words(number: float) -> str:
    """1e-8, 2.5e-6: as descriptions of planted bugs write it."""
    digits, _, exponent = f"{number:.2e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"
