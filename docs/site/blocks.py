"""A page in blocks: fenced code, indented code, headings and text, so that code is left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import NamedTuple


class Block(NamedTuple):
    """Lines of one kind: `fence`, `indented`, `heading`, `table` or `text`."""

    kind: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page in order; joined by line breaks they are the page."""
    lines, at, before = page.split("\n"), 0, ""
    while at < len(lines):
        start, line = at, lines[at]
        at += 1
        if line.lstrip().startswith("```"):
            fence = line[: len(line) - len(line.lstrip())] + re.match("`+", line.lstrip())[0]  # type: ignore[index]
            while at < len(lines) and lines[at].rstrip() != fence:
                at += 1
            at += 1
            yield Block("fence", "\n".join(lines[start:at]))
        elif line.startswith("    ") and before != "list" and not _continued(lines, start):
            while at < len(lines) and (lines[at].startswith("    ") or _gap(lines, at)):
                at += 1
            yield Block("indented", "\n".join(lines[start:at]))
        elif re.match("#+ ", line):
            before = "text"
            yield Block("heading", line)
        elif line.startswith("|"):
            while at < len(lines) and lines[at].startswith("|"):
                at += 1
            before = "text"
            yield Block("table", "\n".join(lines[start:at]))
        else:
            while at < len(lines) and not re.match(r"\s*```|#+ |\|", lines[at]):
                if lines[at].startswith("    ") and not lines[at - 1].strip():
                    break
                at += 1
            text = "\n".join(lines[start:at])
            if text.strip():
                last = text.strip().split("\n\n")[-1]
                before = "list" if re.match(r"\s*([-*]|\d+\.) ", last) else "text"
            yield Block("text", text)


def _continued(lines: list[str], at: int) -> bool:
    """Whether a line belongs to the paragraph before it."""
    return at > 0 and bool(lines[at - 1].strip()) and not re.match(r"\s*```|#|\|", lines[at - 1])


def _gap(lines: list[str], at: int) -> bool:
    """An empty line inside of indented code."""
    rest = iter(lines[at:])
    following = next((line for line in rest if line.strip()), "")
    return not lines[at].strip() and following.startswith("    ")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed that is not a code span."""
    parts = re.split(r"((?<!`)(`+)(?!`).+?(?<!`)\2(?!`))", text, flags=re.DOTALL)
    # re.split gives, in turn: text, span, the marks of the span
    kept = (part if i % 3 == 1 else change(part) for i, part in enumerate(parts) if i % 3 != 2)
    return "".join(kept)


def fenced(code: str, language: str) -> str:
    """A block of code with a fence."""
    inner = dedent(code).strip("\n")
    marks = "`" * max([3, *(len(m) + 1 for m in re.findall("`{3,}", inner))])
    return f"{marks}{language}\n{inner}\n{marks}"
