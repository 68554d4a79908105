"""One page of `docs` as the page that Sphinx reads: links, citations, formulas, code.

The Markdown of `docs` is written for GitHub: citations are `[key, §3]`, formulas are indented
text, links go to files of the repository. Nothing of that is written twice for the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from docs.site.blocks import Block, blocks, fenced, outside_code
from docs.site.formulas import display, is_formula, tex

KEY = re.compile(r"\b[a-z]+\d{4}\w*")
CITED = re.compile(r"\[([a-z]+\d{4}\w*(?:[,;][^\[\]]*)?)\](?!\()")
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
SPAN = re.compile(r"(?<![`\[\\])`([^`\n]+)`(?!`)(?!\]\()")
LANGUAGES = {"$": "console", ">>>": "pycon"}


class Site(NamedTuple):
    """What a page needs to know of the others: keys of the bibliography, places, public names."""

    keys: Collection[str]
    place: Callable[[str], str]  # of a file of the repository, in the site
    names: Collection[str]  # functions that have an API page


def staged(page: str, path: str, site: Site) -> str:
    """The page at this path of the repository, for Sphinx."""
    return "\n".join(_block(block, path, site) for block in blocks(page))


def _block(block: Block, path: str, site: Site) -> str:
    if block.kind == "fence":
        return block.text
    if block.kind == "indented":
        return indented(block.text)
    text = linked(block.text, path, site.place)
    if block.kind == "heading":
        return text
    text = outside_code(text, lambda part: cited(part, site.keys))
    in_table = block.kind == "table"
    return SPAN.sub(lambda found: _span(found[1], site.names, in_table), text)


def indented(text: str) -> str:
    """Indented code with its language; a formula as mathematics."""
    code = re.sub("^    ", "", text, flags=re.MULTILINE).strip("\n")
    if is_formula(code):
        return f"```{{math}}\n{display(code)}\n```\n"
    first = code.split(maxsplit=1)[0] if code.strip() else ""
    return fenced(code, LANGUAGES.get(first, "text")) + "\n"


def cited(text: str, keys: Collection[str]) -> str:
    """Citations `[key, §3; key]` as links to the bibliography.

    >>> cited("the sum [gu2022s4, §3.2] of", {"gu2022s4"})
    'the sum \\\\[{cite:alp}`gu2022s4`, §3.2\\\\] of'
    """

    def links(found: re.Match) -> str:
        if not any(name in keys for name in KEY.findall(found[1])):
            return found[0]
        return rf"\[{KEY.sub(lambda key: f'{{cite:alp}}`{key[0]}`', found[1])}\]"

    return CITED.sub(links, text)


def linked(text: str, path: str, place: Callable[[str], str]) -> str:
    """Links to files of the repository, relative to the page, as links within the site."""
    here = posixpath.dirname(place(path))

    def moved(found: re.Match) -> str:
        target, mark, anchor = found[1].partition("#")
        if not target or re.match(r"\w+:", target):
            return found[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        return posixpath.relpath(place(wanted), here or ".") + mark + anchor

    return LINK.sub(moved, text)


def _span(code: str, names: Collection[str], in_table: bool) -> str:
    """A code span: a public function is a link to it, an equation is mathematics."""
    name, bracket, _ = code.removeprefix("refssm.").partition("(")
    if name in names and (not bracket or code.endswith(")")):
        shown = f"{code} <refssm.{name}>" if bracket or not code.startswith("refssm.") else code
        return f"{{py:obj}}`{shown}`"
    bare = code.replace(r"\|", "|") if in_table else code
    if is_equation(bare):
        return f"{{math}}`{tex(bare)}`"
    return f"`{code}`"


def is_equation(code: str) -> bool:
    """Whether a code span is an equation or a power of mathematics, not a line of a program.

    >>> is_equation("x_k = a_k x_{k-1} + b_k"), is_equation("x = scan(a, b)"), is_equation("l=64")
    (True, False, False)
    """
    return bool(
        re.search(r" [=≤≥←] |^[∂ΣΠ]|[_^]\{", code)
        and is_formula(code if re.search("[=≤≥←]", code) else f"{code} = ")
        and re.search(
            r"[Σ∫∂√ᵀᴴφωθσβγδλρτΔΛĀB̄∘·−²³₀₁₂⁻ᵏ½‖]|_\{|\^[\w{(]|[a-zA-Z]_[a-z] [a-z]_", code
        )
        and not re.search(r"\w=\w|\*\*| \* |[a-z]{3,}_[a-z]{2,}\(|\.\.\.|→|\w\[-?\d", code)
    )
