"""Kernels with a bug: a changed text of a .cuh file in place of the right one."""

from dataclasses import replace
from pathlib import Path

from refssm_gpu._launching.source import KERNELS


def plant(monkeypatch, tmp_path: Path, module, kernels, header: str, old: str, new: str) -> None:
    """Make `kernels`, names in `module`, from a copy in which `old` is `new` in the file `header`.

    Files that include it must stand beside it, so all files of the folder are copied.
    """
    for path in KERNELS.glob("*.cuh"):
        text = path.read_text(encoding="utf-8")
        if path.name == header:
            assert text.count(old) >= 1, f"{header} has no {old!r}"
            text = text.replace(old, new)
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    for name in kernels:
        kernel = getattr(module, name)
        monkeypatch.setattr(module, name, replace(kernel, source=str(tmp_path / kernel.source)))
