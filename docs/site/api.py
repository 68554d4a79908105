"""Pages of the public functions, one a family, from signatures and docstrings.

Our docstrings are Markdown with formulas in Unicode, not reStructuredText: Sphinx's autodoc would
read `|z|` and `x_` as its own marks. So each function becomes a `py:function` of MyST here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module

import refssm
from docs.site.blocks import fenced
from docs.site.formulas import display, is_formula
from docs.site.pages import Site, staged
from refssm.catalog import OPERATORS

OTHERS = "others"  # functions of no family of operators


def families() -> dict[str, list[str]]:
    """Public names by family: each operator, then its gradient, then what else is there."""
    found: dict[str, list[str]] = {}
    left = set(functions())
    for op in OPERATORS:
        for name in (op.name, f"{op.name}_vjp"):
            if name in left:
                left.remove(name)
                found.setdefault(op.family, []).append(name)
    for name in sorted(left):
        parts = getattr(refssm, name).__module__.split(".")
        family = parts[1] if len(parts) > 1 and parts[1] in found else OTHERS
        found.setdefault(family, []).append(name)
    return found


def functions() -> list[str]:
    """The public functions of `refssm`."""
    return [name for name in vars(refssm)["__all__"] if inspect.isroutine(getattr(refssm, name))]


def page(family: str, names: list[str], site: Site) -> str:
    """The page of a family."""
    title = "Other functions" if family == OTHERS else f"`refssm.{family}`"
    head = f"# {title}\n\n"
    if family != OTHERS:
        head += text(inspect.getdoc(import_module(f"refssm.{family}")) or "", site) + "\n\n"
    return head + "\n".join(entry(name, site) for name in names)


def entry(name: str, site: Site) -> str:
    """One function: its signature and its docstring."""
    function: Callable = getattr(refssm, name)
    plain = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in plain.parameters.values()]
    signature = plain.replace(parameters=bare, return_annotation=plain.empty)
    inside = text(inspect.getdoc(function) or "", site)
    return f"``````{{py:function}} refssm.{name}{signature}\n\n{inside}\n``````\n"


def text(docstring: str, site: Site) -> str:
    """A docstring as Markdown for Sphinx."""
    return "\n\n".join(_paragraphs(docstring, site))


def _paragraphs(docstring: str, site: Site) -> Iterator[str]:
    first = True
    for part in re.split(r"\n[ \t]*\n", docstring.strip("\n")):
        line = part.strip()
        if line.startswith(">>>"):
            yield fenced(part, "pycon")
        elif part.startswith("    "):
            yield _formula(part) or fenced(part, "text")
        elif formula := _statement(line, first):
            yield formula
        else:
            plain = re.sub(r"``(.+?)``", r"`\1`", part)
            yield staged(_escaped(plain), "docs/api/index.md", site)
        first = False


def _statement(line: str, first: bool) -> str:
    """A paragraph that is a formula; the first may go on in words after a colon."""
    head, colon, rest = line.partition(": ") if first else (line, "", "")
    shown = "" if re.search(r"`|[a-z]{4}", head) and not first else _formula(head.rstrip("."))
    return shown + (f"\n\n{_escaped(rest[:1].upper() + rest[1:])}" if shown and colon else "")


def _formula(part: str) -> str:
    code = inspect.cleandoc(part)
    return f"```{{math}}\n{display(code)}\n```" if is_formula(code) else ""


def _escaped(part: str) -> str:
    """Stars and brackets that are mathematics, not Markdown."""
    kept = re.split(r"(`[^`]*`)", part)
    return "".join(k if k.startswith("`") else re.sub(r"([*<])", r"\\\1", k) for k in kept)
