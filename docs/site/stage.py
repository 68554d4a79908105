"""`python -m docs.site.stage FOLDER`: write what Sphinx reads, from the Markdown of `docs`.

Nothing of it is kept: pages of `docs` with links, citations and formulas for Sphinx, pages of the
public functions, the bibliography, the code that pages link to, and the table of contents, which
follows from the links of the four doors.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from docs.site import api, contents
from docs.site.blocks import fenced
from docs.site.llms import llms
from docs.site.pages import Site, staged

ROOT = Path(__file__).parents[2]
# a language of code that is shown on a page of its own; other files are copied and linked
SHOWN = {
    ".py": "python", ".js": "javascript", ".mjs": "javascript", ".cpp": "cpp", ".hpp": "cpp",
    ".yml": "yaml", ".toml": "toml", ".cff": "yaml", ".cuh": "cuda",
}  # fmt: skip
PICTURES = ("gallery", "pictures")
MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"


def keys() -> frozenset[str]:
    """The keys of the bibliography."""
    bib = (ROOT / "docs/references.bib").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^@\w+\{(\w+),", bib, re.MULTILINE))


def place(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path.startswith("docs/") and path.endswith((".md", ".png", ".svg")):
        return path.removeprefix("docs/")
    if path.endswith(".md"):
        return f"project/{path.lower()}"
    if (ROOT / path).is_dir():
        inner = path.removeprefix("docs/")
        return f"{inner}.md" if (ROOT / f"{path}.md").is_file() else f"code/{path}/index.md"
    if Path(path).suffix in SHOWN:
        return f"code/{path}.md"
    return f"files/{path}"


def pages() -> list[str]:
    """The pages of the repository that are pages of the site."""
    inner = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))
    return inner + sorted(p.name for p in ROOT.glob("*.md") if p.name != "README.md")


def write(folder: Path) -> None:
    """Write all of it anew; a file that stays as it was keeps its time, for Sphinx."""
    written = dict(_texts())
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    copied = dict(_copies())
    for name, source in copied.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, folder / name)
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        if path.relative_to(folder).as_posix() not in written.keys() | copied.keys():
            path.unlink()


def _texts() -> Iterator[tuple[str, str]]:
    """Every page that is written, by its place."""
    families = api.families()
    names = frozenset(name for found in families.values() for name in found)
    site = Site(keys(), place, names)
    originals = {path: (ROOT / path).read_text(encoding="utf-8") for path in pages()}
    tree = contents.tree(originals)
    for path, text in originals.items():
        below = [place(page) for page in tree.get(path, [])]
        extra = ["api/index.md", "bibliography.md"] if path == "docs/doors/learn.md" else []
        yield place(path), staged(text, path, site) + contents.toctree(below + extra)
    yield from _api(families, site)
    yield "bibliography.md", BIBLIOGRAPHY
    yield "_extra/llms.txt", llms(originals, place)
    yield "_extra/.nojekyll", ""  # GitHub Pages takes folders that begin with _ as they are
    for path in sorted(linked(originals)):
        if place(path).startswith("code/"):
            yield place(path), _code(path)


def _api(families: dict[str, list[str]], site: Site) -> Iterator[tuple[str, str]]:
    for family, members in families.items():
        yield f"api/{family}.md", api.page(family, members, site)
    listed = [f"/api/{family}.md" for family in families]
    yield "api/index.md", API + contents.toctree(listed, hidden=False)


def linked(originals: dict[str, str]) -> set[str]:
    """Files and folders of the repository that pages link to, without pages."""
    return {
        target
        for path, text in originals.items()
        for target in contents.targets(path, text)
        if not target.endswith(".md") and (ROOT / target).exists()
    }


def _code(path: str) -> str:
    """A page with the text of a file, or of all files in a folder."""
    source = ROOT / path
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    parts = [f"---\norphan: true\n---\n\n# `{path}`\n"]
    for file in files:
        if file.suffix in SHOWN:
            parts += [f"## `{file.name}`\n"] if source.is_dir() else []
            parts.append(fenced(file.read_text(encoding="utf-8"), SHOWN[file.suffix]) + "\n")
    return "\n".join(parts)


def _copies() -> Iterator[tuple[str, Path]]:
    """Every file that is copied, by its place: pictures, data, the bibliography, MathJax."""
    for folder in PICTURES:
        for path in sorted((ROOT / "docs" / folder).iterdir()):
            yield f"{folder}/{path.name}", path
    originals = {path: (ROOT / path).read_text(encoding="utf-8") for path in pages()}
    for path in sorted(linked(originals)):
        if place(path).startswith("files/"):
            yield place(path), ROOT / path
    here = Path(__file__).parent
    yield "references.bib", ROOT / "docs/references.bib"
    yield "conf.py", here / "conf.py"
    yield from ((f"_static/{path.name}", path) for path in sorted((here / "static").iterdir()))
    mathjax = distribution("sphinx-mathjax-offline").locate_file(MATHJAX)
    yield "_static/mathjax.js", Path(str(mathjax))


API = """\
# Functions

Every public function, one page a family, from its docstring. An operator comes first, then its
gradient, `…_vjp`.
"""
BIBLIOGRAPHY = """\
# Bibliography

What the citations of these pages and of docstrings mean.

```{bibliography}
:all:
```
"""

if __name__ == "__main__":
    write(Path(sys.argv[1]))
