"""`llms.txt`: the site in one file for language models: a sentence a page, by door."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from docs.site.blocks import blocks
from docs.site.contents import FRONT, tree


def llms(pages: Mapping[str, str], place: Callable[[str], str]) -> str:
    """The text, from the titles and first sentences of the pages that the doors lead to."""
    found = tree(pages)
    parts = [f"# refssm\n\n> {first_sentence(pages[FRONT])}"]
    for door in found[FRONT]:
        lines, ahead = [], [*found.get(door, [])]
        while ahead:
            page = ahead.pop(0)
            ahead = found.get(page, []) + ahead
            url = place(page).removesuffix(".md") + ".html"
            lines.append(f"- [{title(pages[page])}]({url}): {first_sentence(pages[page])}")
        parts.append(f"## {title(pages[door])}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def title(page: str) -> str:
    """The first heading of a page."""
    return page.partition("\n")[0].lstrip("# ").replace("`", "")


def first_sentence(page: str) -> str:
    """The first sentence of a page: not of a heading, a table, code, or a remark for writers."""
    texts = [block.text for block in blocks(page) if block.kind == "text"]
    for paragraph in re.split(r"\n\s*\n", "\n\n".join(texts)):
        text = " ".join(paragraph.split())
        if text and text[0] not in "<![(-" and "Do not edit" not in text:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
            return re.split(r"(?<=[.])\s(?=[A-Z`(])", plain)[0]
    return ""
