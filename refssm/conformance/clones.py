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

    @property
    def name(self) -> str:
        """The name of its folder, as `git clone` gives it."""
        return self.repository.rpartition("/")[2]


CLONES = {
    clone.name: clone
    for clone in (
        Clone(
            "tommyip/mamba2-minimal",
            "4f4413731f24303b4e046962bce6ca5b6a3b13d6",
            ("mamba2_minimal_ssd",),
            ("torch", "einops"),
        ),
        Clone(
            "johnma2006/mamba-minimal",
            "03de542a36d873f6e6c4057ad687278cc6ae944d",
            ("mamba_minimal_scan", "mamba_minimal_block"),
            ("torch", "einops"),
        ),
        Clone(
            "alxndrTL/mamba.py",
            "2cc168c78b2494557f45072c4b8daa9d6f5608c7",
            ("mamba_py_pscan", "mamba_py_scan", "mamba_py_scan_seq", "mamba_py_block"),
            ("torch",),
        ),
        Clone(
            "kroggen/mamba.c",
            "7387f49e352f86a0c22041c0f66fd2a40b58a207",
            ("mamba_c_layer",),
        ),
        Clone(
            "idoh/mamba.np",
            "6c54a64254de986e375da40a995f02e329ba1582",
            ("mamba_np_scan", "mamba_np_block"),
            ("einops", "transformers"),
        ),
        Clone(
            "google-deepmind/recurrentgemma",
            "2efa84dac0e68e63547a27a18fa943c98f1c312e",
            (
                "recurrentgemma_rnn_scan",
                "recurrentgemma_rnn_scan_bfloat16",
                "recurrentgemma_scan_native",
                "recurrentgemma_scan_associative",
                "recurrentgemma_scan_pallas",
            ),
            ("torch", "jax", "flax", "einops", "jaxtyping", "typeguard", "absl", "sentencepiece"),
        ),
        Clone(
            "TariqAHassan/S4Torch",
            "9c5c72ce3ea84d1450ec11e5ae97bed7085ea3fb",
            ("s4torch_layer",),
            ("torch",),
        ),
    )
}


def path_of(name: str) -> Path | None:
    """The folder of a clone, or None if it is not there."""
    folder = os.environ.get(VARIABLE, "")
    path = Path(folder).expanduser() / name
    return path if folder and path.is_dir() else None


def absent(name: str) -> str:
    """Why a repository cannot be judged here, or ""."""
    clone = CLONES[name]
    if path_of(name) is None:
        clone_it = f"git clone https://github.com/{clone.repository}"
        return f"{name} is not here: {clone_it} in a folder that {VARIABLE} names"
    lacking = [package for package in clone.needs if find_spec(package) is None]
    return f"{name} needs {', '.join(lacking)}: pip install it" if lacking else ""


def source(name: str, file: str) -> Path:
    """A file of a clone. Raises ImportError with a sentence if the clone is not there."""
    if reason := absent(name):
        raise ImportError(reason)
    path = path_of(name)
    assert path is not None
    return path / file


def module(name: str, dotted: str, root: str = "") -> ModuleType:
    """A module of a clone, by its dotted name below the folder `root` of the clone.

    Many repositories call their package `src` or `models`, so its modules do not stay in
    `sys.modules`. Raises ImportError with a sentence if the clone or a package is not there.
    """
    path = source(name, "")
    with _first_on_path(path / root, path):
        return import_module(dotted)


@contextmanager
def _first_on_path(root: Path, clone: Path) -> Iterator[None]:
    """Import from `root` before anything else, without bytecode, and forget the clone's modules."""
    before, written = dict(sys.modules), sys.dont_write_bytecode
    tops = {p.stem for p in root.iterdir()} if root.is_dir() else set()
    for taken in [m for m in sys.modules if m.partition(".")[0] in tops]:
        if not _inside(sys.modules[taken], clone):
            continue
        del sys.modules[taken]
    sys.path.insert(0, str(root))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = written
        for new in [m for m in sys.modules if m not in before]:
            if _inside(sys.modules[new], clone):
                del sys.modules[new]


def _inside(loaded: ModuleType, clone: Path) -> bool:
    """True if a loaded module, or a package without `__init__.py`, is a file of the clone."""
    spec = getattr(loaded, "__spec__", None)  # torch.classes answers to every name
    folders = getattr(spec, "submodule_search_locations", None) or []
    places = [getattr(spec, "origin", None), *folders]
    return any(isinstance(p, str) and Path(p).is_relative_to(clone) for p in places)
