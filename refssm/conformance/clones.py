"""Clones of public repositories that no package index has, and how a plug-in imports one.

The environment variable REFSSM_SUBJECTS names a folder of clones, each under the name of its
repository. Nothing of them is part of refssm. `make subjects FOLDER=…` says which are there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

VARIABLE = "REFSSM_SUBJECTS"


@dataclass(frozen=True)
class Clone:
    """A repository, the judged commit, its plug-ins, and the packages that its files import."""

    repository: str
    commit: str
    modules: tuple[str, ...]
    needs: tuple[str, ...] = ()
    subject: str = ""  # for `--subject`, if a package has the repository's name

    @property
    def name(self) -> str:
        """The name of its folder, as `git clone` gives it."""
        return self.repository.rpartition("/")[2]


CLONES = {
    clone.subject or clone.name: clone
    for clone in (
        Clone(
            "tommyip/mamba2-minimal",
            "4f4413731f24303b4e046962bce6ca5b6a3b13d6",
            ("mamba2_minimal_ssd",),
            ("torch", "einops"),
        ),
        Clone(
            "fla-org/flash-linear-attention",
            "bc3b101dcb713ddc5bd8924b66754eb68b5ccf89",
            (
                "flash_linear_attention_naive",
                "flash_linear_attention_simple_gla",
                "flash_linear_attention_gla_naive",
                "flash_linear_attention_gla",
                "flash_linear_attention_gla_chunk",
                "flash_linear_attention_hgrn_naive",
                "flash_linear_attention_hgrn",
                "flash_linear_attention_hgrn_chunk",
            ),
            ("torch", "triton", "einops", "transformers"),
        ),
        Clone(
            "state-spaces/mamba",
            "e9594ce1c732d97440f0332fdc43170a2294dbfa",
            ("mamba_ref", "mamba_ref_complex", "mamba_triton", "mamba_triton_heads"),
            ("torch", "triton", "einops", "transformers"),
        ),
        Clone(
            "proger/accelerated-scan",
            "866fa4cd4eaf01338ee6d77a4f99fcd4b2f656d1",
            ("accelerated_scan_tree", "accelerated_scan_scalar", "accelerated_scan_complex"),
            ("torch", "triton"),
            subject="proger-accelerated-scan",
        ),
    )
}


def path_of(name: str) -> Path | None:
    """The folder of a clone, or None if it is not there."""
    folder = os.environ.get(VARIABLE, "")
    path = Path(folder).expanduser() / (CLONES[name].name if name in CLONES else name)
    return path if folder and path.is_dir() else None


def absent(name: str) -> str:
    """Why a repository cannot be judged here, or ""."""
    clone = CLONES[name]
    if path_of(name) is None:
        clone_it = f"git clone https://github.com/{clone.repository}"
        return f"{name} is not here: {clone_it} in a folder that {VARIABLE} names"
    lacking = [package for package in clone.needs if find_spec(package) is None]
    return f"{name} needs {', '.join(lacking)}: pip install it" if lacking else ""


def module(name: str, dotted: str, root: str = "", *, stays: bool = False) -> ModuleType:
    """A module of a clone, by its dotted name below the folder `root` of the clone.

    Many repositories call their package `src` or `models`, so its modules do not stay in
    `sys.modules`, unless `stays`: for functions that import their package again when they are
    called. Raises ImportError with a sentence if the clone or a package is not there.
    """
    if reason := absent(name):
        raise ImportError(reason)
    path = path_of(name)
    assert path is not None
    with _first_on_path(path / root, path, stays):
        return import_module(dotted)


@contextmanager
def _first_on_path(root: Path, clone: Path, stays: bool) -> Iterator[None]:
    """Import from `root` before anything else, without bytecode, and forget the clone's modules."""
    before, written = dict(sys.modules), sys.dont_write_bytecode
    tops = {p.stem for p in root.iterdir()} if root.is_dir() else set()
    for taken in [m for m in sys.modules if m.partition(".")[0] in tops]:
        if stays or not _inside(sys.modules[taken], clone):
            continue
        del sys.modules[taken]
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = written
        for new in [m for m in sys.modules if m not in before and not stays]:
            if _inside(sys.modules[new], clone):
                del sys.modules[new]


def _inside(loaded: ModuleType, clone: Path) -> bool:
    """True if a loaded module, or a package without `__init__.py`, is a file of the clone."""
    spec = getattr(loaded, "__spec__", None)  # torch.classes answers to every name
    folders = getattr(spec, "submodule_search_locations", None) or []
    places = [getattr(spec, "origin", None), *folders]
    return any(isinstance(p, str) and Path(p).is_relative_to(clone) for p in places)
