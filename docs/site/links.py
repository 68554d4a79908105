"""`python -m docs.site.links FOLDER`: every link of the built site finds its page and its anchor.

Pictures, scripts and styles are links, too. Nothing may come from a network but links that a
reader clicks on.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Seen(HTMLParser):
    """The links and the anchors of a page, and what it loads."""

    def __init__(self):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what refers to something, and what can be referred to."""
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and (href := given.get("href")):
            self.links.append(href)
        loads = given.get("href") if tag == "link" else given.get("src")
        if loads:
            self.loaded.append(loads)


@cache
def seen(path: Path) -> Seen:
    """What a page has."""
    found = Seen()
    found.feed(path.read_text(encoding="utf-8"))
    return found


def broken(folder: Path) -> list[str]:
    """A sentence for each link that finds nothing, and for what is loaded from elsewhere."""
    folder = folder.resolve()
    found = []
    for path in sorted(folder.rglob("*.html")):
        page = seen(path)
        for link in dict.fromkeys([*page.links, *page.loaded]):
            if problem := _problem(link, path, link in page.loaded):
                found.append(f"{path.relative_to(folder)}: {link}: {problem}")
    return found


def _problem(link: str, path: Path, loaded: bool) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return "loaded from a network" if loaded else ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target.suffix == ".html" and anchor not in seen(target).anchors:
        return "no such anchor"
    return ""


def main(folder: Path) -> int:
    """Print what is broken; 1 if anything is."""
    found = broken(folder)
    pages = len([*folder.rglob("*.html")])
    links = sum(len(seen(p.resolve()).links) for p in folder.rglob("*.html"))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{pages} pages, {links} links, {len(found)} broken\n")
    return int(bool(found or not pages))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
