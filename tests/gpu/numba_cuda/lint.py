"""Compiles the kernels of the Numba tier to PTX without a GPU, and reads what came out.

    PYTHONPATH=tests python -m gpu.numba_cuda.lint [kernel…]

prints one line of JSON for each kernel, element type and card: what is wrong, if anything. NVVM,
NVIDIA's compiler library, is taken from pip's package `nvidia-nvvm` and from nowhere else. It runs
in a process of its own: Numba looks for NVVM once, where CUDA_HOME points.
"""

# pyright: reportAttributeAccessIssue=false, reportPrivateImportUsage=false
# (Numba makes attributes when it is imported)

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba.cuda.dispatcher
from gpu.numba_cuda import cauchy, scan, selective_scan
from gpu.numba_cuda.field import FIELDS, Field, cuda
from gpu.numba_cuda.launch import NumbaKernel
from numba.cuda.cudadrv.libs import get_cudalib

CARDS = ((8, 0), (9, 0))  # compute capability: A100, H100
MODULES = (scan, cauchy, selective_scan)
KERNELS = {
    k.name: k for m in MODULES for k in vars(m).values() if isinstance(k, NumbaKernel)
}  # fmt: skip
MISSING = "the package nvidia-nvvm is not installed: pip install 'nvidia-nvvm==13.0.*'"


class NoNVVM(RuntimeError):
    """NVVM is not installed; the message is a sentence."""


def main() -> None:
    """The command."""
    wanted = sys.argv[1:] or [*KERNELS]
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.environ["CUDA_HOME"] = str(toolkit(Path(folder)))
            found = Path(get_cudalib("nvvm")).resolve()
            assert found == compiler()[0], f"Numba took NVVM from elsewhere: {found}"
        except NoNVVM as error:
            sys.exit(f"gpu.numba_cuda.lint: {error}")
        for name in wanted:
            for line in judged(KERNELS[name]):
                sys.stdout.write(json.dumps(line) + "\n")


def compiler() -> tuple[Path, Path]:
    """NVVM and libdevice of pip's package."""
    try:
        installed = {path.name: path.locate() for path in files("nvidia-nvvm") or ()}
    except PackageNotFoundError:
        raise NoNVVM(MISSING) from None
    library = next((p for n, p in installed.items() if n.startswith("libnvvm.so")), None)
    device = installed.get("libdevice.10.bc")
    if library is None or device is None:
        raise NoNVVM("the package nvidia-nvvm lacks libnvvm.so or libdevice.10.bc")
    return Path(library).resolve(), Path(device).resolve()


def toolkit(folder: Path) -> Path:
    """This folder, laid out as a CUDA toolkit with that compiler: where Numba looks for it."""
    for place, file in zip(("lib64", "libdevice"), compiler(), strict=True):
        link = folder / "nvvm" / place / file.name
        link.parent.mkdir(parents=True)
        link.symlink_to(file)
    return folder


def judged(kernel: NumbaKernel) -> Iterator[dict[str, Any]]:
    """What is wrong with a kernel, for each type and card."""
    for field in FIELDS.values():
        for card in CARDS:
            wrong = faults(ptx(kernel, field, card), field)
            yield {"kernel": kernel.name, "type": field.name, "card": card, "faults": wrong}


def ptx(kernel: NumbaKernel, field: Field, card: tuple[int, int], function: Callable | None = None):
    """The kernel's PTX, or that of another function with its arguments."""
    # Numba asks the current card what to compile functions for that a kernel calls
    numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=card)
    made = function or kernel.make(field)
    return cuda.compile_ptx(made, kernel.signature(field), cc=card)[0]


def faults(text: str, field: Field) -> list[str]:
    """Lines of PTX that should not be there: double precision in kernels of single precision, and
    local memory, which is memory of the card."""
    single = field.name in ("float32", "complex64")
    found = []
    for line in text.splitlines():
        line = line.strip()
        if single and re.search(r"\.f64\b", line):
            found.append(f"double precision: {line}")
        if re.match(r"(\.local|(ld|st)\.local)\b", line):
            found.append(f"local memory: {line}")
    return found[:5]


if __name__ == "__main__":
    main()
