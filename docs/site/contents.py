"""The table of contents: which page is below which, from the links of the pages themselves.

The first page links to the doors, the doors to pages. A page of a folder is below the page that
has the folder's name: `findings/s4.md` below `findings.md`. A page that no door leads to is below
none, and a test says so.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

FRONT = "docs/index.md"
DOORS = ("judge", "learn", "train", "work")
BY_DOOR = ("learn", "train", "judge", "work")  # a page of two doors is below the first of these


def targets(path: str, text: str) -> list[str]:
    """Files of the repository that a page links to, in order, each once."""
    found = re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text)
    inside = [link for link in found if not re.match(r"\w+:", link)]
    here = posixpath.dirname(path)
    return [*dict.fromkeys(posixpath.normpath(posixpath.join(here, link)) for link in inside)]


def tree(pages: Mapping[str, str]) -> dict[str, list[str]]:
    """For each page those below it; each page is below one."""
    doors = [f"docs/doors/{name}.md" for name in DOORS]
    found: dict[str, list[str]] = {FRONT: doors}
    seen = {FRONT, *doors}
    ahead = [f"docs/doors/{name}.md" for name in BY_DOOR]
    while ahead:
        page = ahead.pop(0)
        below = [
            target
            for target in _pages_of(targets(page, pages[page]), pages)
            if target not in seen and _parent(page, target)
        ]
        seen |= {*below}
        found[page] = below
        ahead += below
    return found


def _pages_of(links: Sequence[str], pages: Mapping[str, str]) -> list[str]:
    """The pages among these links; of a folder, all that are in it."""
    found = [[p for p in pages if p == link or posixpath.dirname(p) == link] for link in links]
    return [*dict.fromkeys(page for some in found for page in some)]


def _parent(page: str, target: str) -> bool:
    """Whether a linked page may be below this one: a door's, or one of the folder of its name."""
    return page.startswith("docs/doors/") or target.startswith(page.removesuffix(".md") + "/")


def lost(pages: Mapping[str, str]) -> list[str]:
    """Pages that no door leads to."""
    found = tree(pages)
    return sorted({*pages} - {FRONT} - {page for below in found.values() for page in below})


def toctree(below: Sequence[str], *, hidden: bool = True, caption: str = "") -> str:
    """A table of contents of these pages."""
    if not below:
        return ""
    options = [":hidden:"] * hidden + [f":caption: {caption}"] * bool(caption) + [":maxdepth: 1"]
    entries = [page if page.startswith("/") else f"/{page}" for page in below]
    return "\n```{toctree}\n" + "\n".join([*options, "", *entries]) + "\n```\n"
