"""`make tables`: the page `docs/pictures.md`, every picture with the code that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from refssm.experiments.catalog import TRAINED

OF_HANKEL = ("hankel-rank", "perturbation", "memory", "initialisation", "convergence")
PAGE, DOCS = Path("docs/pictures.md"), Path("docs")


class Maker(NamedTuple):
    """How a kind of pictures is made: the command, the file with the code, the page about it."""

    command: str
    code: str
    page: str


def maker(picture: Path) -> Maker:
    """How a picture of `docs` is made; a picture of no known kind is a KeyError."""
    kind, _, rest = picture.stem.partition("_")
    if kind == "memory":
        command = f"refssm plot memory --measure {rest} --n 64"
        return Maker(command, "refssm/gallery/memory.py", "operators/hippo_memory.md")
    if kind == "basis":
        command = f"refssm plot basis --measure {rest} --n 32"
        return Maker(command, "refssm/gallery/basis.py", "operators/hippo.md")
    if kind == "experiment":
        name = rest.replace("_", "-")
        folder = "refssm/experiments/trained" if name in TRAINED else "refssm/experiments"
        page = "hankel_and_hope.md" if name in OF_HANKEL else "experiments.md"
        return Maker(f"refssm experiment {name}", f"{folder}/{rest}.py", page)
    if kind == "learn":
        command = "PYTHONPATH=tests python -m docs.build.learning"
        return Maker(command, "docs/build/learning.py", f"learn/{rest}.md")
    return OTHERS[picture.stem]


OTHERS = {
    "kernels": Maker(
        "refssm plot kernels --n 64", "refssm/gallery/kernels.py", "operators/diagonal.md"
    ),
    "spectrum": Maker(
        "refssm plot spectrum --n 64", "refssm/gallery/spectrum.py", "operators/nplr.md"
    ),
    "judge": Maker(
        "PYTHONPATH=tests python -m docs.build.pictures", "docs/build/pictures.py", "judge.md"
    ),
    "stages": Maker(
        "PYTHONPATH=tests python -m docs.build.stages",
        "docs/build/stages.py",
        "operators/linear_attention_stages.md",
    ),
    "training": Maker("make experiments-quick", "refssm/gallery/training.py", "training.md"),
    "benchmarks": Maker("make benchmarks", "refssm/gallery/bench.py", "benchmarks.md"),
}
TITLES = {
    "basis": "The basis functions on which a memory projects the past",
    "memory": "The states of a memory, and the signal reconstructed from them",
    "kernels": "Initial kernels of LegS, S4D-Lin, S4D-Inv and DSS",
    "spectrum": "Eigenvalues of the normal parts of HiPPO matrices",
    "experiment": "Experiments",
    "learn": "What goes wrong in float32",
    "judge": "Errors of three programs, and the bound that the judge accepts",
    "stages": "What a stage of a chunk loses in few bits",
    "training": "Layers that learn digits",
    "benchmarks": "Accuracy against time",
}


def pictures() -> list[Path]:
    """All pictures of `docs`, by kind."""
    found = [*sorted(DOCS.glob("gallery/*")), *sorted(DOCS.glob("pictures/*"))]
    order = [*TITLES]
    return sorted(found, key=lambda path: order.index(path.stem.partition("_")[0]))


def page() -> str:
    """The page."""
    return "\n\n".join([HEAD, *_parts()]) + "\n"


def _parts() -> Iterator[str]:
    kinds = {path.stem.partition("_")[0] for path in pictures()}
    for kind in (kind for kind in TITLES if kind in kinds):
        yield f"## {TITLES[kind]}"
        of_kind = [path for path in pictures() if path.stem.partition("_")[0] == kind]
        yield f"More: {_pages(of_kind)}. Code: {_codes(of_kind)}."
        for path in of_kind:
            name = path.stem.partition("_")[2] or kind
            yield f"![{name.replace('_', ' ')}]({path.relative_to(DOCS).as_posix()})"
            yield f"```\n{maker(path).command}\n```"


def _pages(of_kind: list[Path]) -> str:
    pages = dict.fromkeys(maker(path).page for path in of_kind)
    return " · ".join(f"[{Path(page).stem.replace('_', ' ')}]({page})" for page in pages)


def _codes(of_kind: list[Path]) -> str:
    files = dict.fromkeys(maker(path).code for path in of_kind)
    return " · ".join(f"[{Path(file).name}](../{file})" for file in files)


HEAD = """\
# Gallery

Every picture, with the command that makes it. `make pictures` makes most of them again; the last
two need a run of minutes or hours. This page is written by `make tables`. Do not edit it."""


def write() -> None:
    """Write the page, in the current folder."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
