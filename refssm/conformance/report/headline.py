"""A failure in a few words: for the summary of a test suite, where a line is cut at the terminal's
width."""

from __future__ import annotations

import re

from refssm.conformance.judging.result import Result

# of the sentences of `judging` about the worst entry
WORST = re.compile(r"worst (?P<place>[^:]+): got (?P<got>\S+)(?: \(\w+\))?, want (?P<want>[^\s;]+)")


def headline(result: Result, where: str = "") -> str:
    """Grade, operator and worst entry: "F linear_scan: x[0,64,0]=1, want 65".

    `where` stands in place of the operator. An error has its verdict in place of a grade.
    """
    first = result.verdict if result.grade == "-" or result.verdict == "thin" else result.grade
    return f"{first} {where or result.operator}: {_short(result.message)}".rstrip(": ")


def _short(message: str) -> str:
    """The worst entry of a message; if it has none, its first clause."""
    if worst := WORST.search(message):
        place = worst["place"].replace(", ", ",")
        return f"{place}={worst['got']}, want {worst['want']}"
    return message.partition("; ")[0].partition("\n")[0]
