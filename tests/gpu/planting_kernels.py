"""Kernels with a bug: a changed text of a .cuh file in place of the right one."""

from dataclasses import replace
from pathlib import Path

from refssm_gpu._launching.kernel import KERNELS


def plant(monkeypatch, tmp_path: Path, module, kernels, header: str, old: str, new: str) -> None:
    """Make `kernels`, names in `module`, from a copy in which `old` is `new` in the file `header`.

    Files that include it must find it where it stood, so all folders are copied.
    """
    for path in KERNELS.rglob("*.cuh"):
        text = path.read_text(encoding="utf-8")
        if path.name == header:
            assert text.count(old) >= 1, f"{header} has no {old!r}"
            text = text.replace(old, new)
        copy = tmp_path / path.relative_to(KERNELS)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    for name in kernels:
        kernel = getattr(module, name)
        monkeypatch.setattr(module, name, replace(kernel, source=str(tmp_path / kernel.source)))
