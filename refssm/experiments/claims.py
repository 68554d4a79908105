"""What a paper says, and whether an experiment here showed it.

An experiment about a claim has, beside `measured`, `tables` and `draw`,

- `CLAIM`: what is said, and where;
- `findings(result)`: sentences with numbers, each held or not.

An ordering that does not hold is a result, and is written as such.
"""

from typing import NamedTuple


class Claim(NamedTuple):
    """What a document says, in our words, and its key in `docs/references.bib`."""

    told: str
    source: str


class Finding(NamedTuple):
    """One sentence about the numbers that were measured."""

    held: bool
    told: str

    def __str__(self):
        return f"{'held' if self.held else 'not held'}: {self.told}"
